package file

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// cannot is the error for a verb that did not work on path. It says in words
// what the kernel says in a number, and names the declared path, not the
// temporary file.
func cannot(verb, path string, err error) error {
	return fmt.Errorf("cannot %s %q: %w", verb, path, cause(err))
}

// cause puts a bare error of the kernel's into words. One that already says
// more stays as it is.
func cause(err error) error {
	op := ""
	pe, isPath := err.(*fs.PathError)
	_, isErrno := err.(unix.Errno)
	switch {
	case isPath:
		op = pe.Op
	case !isErrno:
		return err
	}
	switch {
	case errors.Is(err, unix.EPERM) && (op == "chown" || op == "chmod"):
		return fault.Failedf("%s: %w: the file system may keep no owner or mode of its own, or it is immutable", op, unix.EPERM).
			Hint("look at it with findmnt and lsattr; chattr -i makes it mutable")
	case errors.Is(err, unix.EPERM):
		return fault.Failedf("%w: it or its directory may be immutable (chattr -i) or append-only (chattr -a)", unix.EPERM).
			Hint("look at it with lsattr")
	case errors.Is(err, unix.EROFS):
		return fault.Failedf("the file system is read-only: %w", unix.EROFS)
	case errors.Is(err, unix.ENOSPC):
		return fault.Failedf("no space or no inode is left on its file system: %w", unix.ENOSPC).
			Hint("df and df -i say which")
	case errors.Is(err, unix.EDQUOT):
		return fault.Failedf("the disk quota is used up: %w", unix.EDQUOT)
	case errors.Is(err, unix.EBUSY):
		return fault.Failedf("something is mounted on it: %w", unix.EBUSY).Hint("look at it with findmnt")
	case isPath:
		return fmt.Errorf("%s: %w", pe.Op, pe.Err)
	}
	return err
}
