// Package guard says whether what lies on a disk can be taken for root's word:
// who owns it, and who else could have written it.
//
// It promises that a file or a directory that passes can be changed by nobody
// but root and the user this program runs as. It looks at owner and mode (which
// an ACL that lets others write shows in, acl(5)), not at mounts and not at who
// is root in a container. It judges an instant: what passed stays so because
// only root and the caller can change it.
package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// maxLinks bounds the symlinks on one way, as path_resolution(7) does.
const maxLinks = 40

// Own refuses (kind Refused, with a remedy) what belongs to neither root nor
// the caller, or what others may write. The sticky bit does not help: in such a
// directory anybody can put a name that is not there yet.
//
// Group write is granted to the group of an ordinary user alone (gid = uid, as
// useradd(8) makes them with a umask of 002).
func Own(path string, fi fs.FileInfo) error {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("cannot tell who owns %q", path)
	}
	me := uint32(os.Geteuid())
	if st.Uid != 0 && st.Uid != me {
		return fault.Refusedf("%q belongs to uid %d, who could put anything there", path, st.Uid).
			Hint("look at what it holds, then: chown -R %d %s", me, fault.Word(path))
	}
	others := fs.FileMode(0o022)
	if st.Uid != 0 && st.Gid == st.Uid {
		others = 0o002
	}
	if mode := fi.Mode(); mode&fs.ModeSymlink == 0 && mode.Perm()&others != 0 {
		return fault.Refusedf("%q (of uid %d, mode %04o) can be written by others", path, st.Uid, mode.Perm()).
			Hint("look at what it holds, then: chmod -R go-w %s", fault.Word(path))
	}
	return nil
}

// Way is Own for everything on the way to path, itself included, as far as it
// is there; it follows symlinks and judges them too. It begins with the
// directory root ("" is "/"): who may write above a root that a person names is
// that person's to know.
func Way(root, path string) error {
	at, rest := "/", filepath.Clean(path)
	if root != "" {
		real, err := filepath.EvalSymlinks(root)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if rest, err = filepath.Rel(root, path); err != nil {
			return err
		}
		at = real
	}
	todo := append([]string{"."}, strings.Split(rest, "/")...)
	for links := 0; len(todo) > 0; {
		next := filepath.Join(at, todo[0])
		todo = todo[1:]
		fi, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := Own(next, fi); err != nil {
			return err
		}
		if fi.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return fault.Refusedf("%q is a loop of symlinks", next)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		// Not cleaned: what is above a symlink is above its target.
		todo = append(strings.Split(target, "/"), todo...)
	}
	return nil
}
