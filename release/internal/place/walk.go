package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// openAt opens the directory name of d itself, not what a symlink in its place leads
// to: then it is ENOTDIR.
func openAt(d *durable.Dir, name string) (*durable.Dir, error) {
	path := filepath.Join(d.Name(), name)
	fd, err := unix.Openat(d.FD(), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) { // open(2) has both for it
		err = unix.ENOTDIR
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return durable.DirOf(fd, path), nil
}

// namesIn returns the names in a directory.
func namesIn(d *durable.Dir) ([]string, error) {
	fd, err := unix.Openat(d.FD(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.Name(), Err: err}
	}
	f := os.NewFile(uintptr(fd), d.Name())
	defer f.Close()
	return f.Readdirnames(-1)
}

// A visit is told of one name in the open directory d.
type visit func(d *durable.Dir, name string, st *unix.Statx_t) error

// meanwhile is called between looking at a directory and opening it: where a test
// stands in for who swaps names.
var meanwhile = func(path string) {}

// walk visits all that is below a directory, what is in a directory before itself.
// Each is reached by its name in the directory that is open, so that nobody who may
// write there leads elsewhere by a symlink. A mount point is refused: a rename takes
// it along, and whoever then removes the old directory removes what is mounted,
// which lies elsewhere.
func walk(dir *durable.Dir, v visit) error {
	var top unix.Statx_t
	if err := statx(dir, "", &top); err != nil {
		return err
	}
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := walkName(dir, name, &top, v); err != nil {
			return err
		}
	}
	return nil
}

func walkName(d *durable.Dir, name string, top *unix.Statx_t, v visit) error {
	var st unix.Statx_t
	if err := statx(d, name, &st); err != nil {
		return err
	}
	if isMount(top, &st) {
		return mountPoint(filepath.Join(d.Name(), name))
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		meanwhile(filepath.Join(d.Name(), name))
		if err := walkDir(d, name, top, &st, v); err != nil {
			return err
		}
	}
	if v == nil {
		return nil
	}
	return v(d, name, &st)
}

// walkDir visits what is in a directory, and takes down what it was when it was open.
func walkDir(d *durable.Dir, name string, top, st *unix.Statx_t, v visit) error {
	sub, err := openAt(d, name)
	if err != nil {
		return err
	}
	defer sub.Close()
	if err := statx(sub, "", st); err != nil {
		return err
	}
	if isMount(top, st) {
		return mountPoint(sub.Name())
	}
	names, err := namesIn(sub)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := walkName(sub, name, top, v); err != nil {
			return err
		}
	}
	return nil
}

// remove removes what is called name in d with all that is in it, but nothing that is
// mounted there.
func remove(d *durable.Dir, name string) error {
	var top unix.Statx_t
	if err := statx(d, "", &top); err != nil {
		return err
	}
	return walkName(d, name, &top, func(d *durable.Dir, name string, st *unix.Statx_t) error {
		flags := 0
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			flags = unix.AT_REMOVEDIR
		}
		if err := unix.Unlinkat(d.FD(), name, flags); err != nil {
			return &fs.PathError{Op: "remove", Path: filepath.Join(d.Name(), name), Err: err}
		}
		return nil
	})
}

func mountPoint(path string) *fault.Error {
	return fault.Refusedf("%q is a mount point: what is there belongs to somebody else", path).
		Hint("unmount it, or use another directory")
}
