package repository

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// openIn opens the file name of d for reading; with follow it may be a symlink,
// as repo-add leaves them. A FIFO does not block it.
func openIn(d *durable.Dir, name string, follow bool) (*os.File, error) {
	flags := unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Openat(d.FD(), name, flags, 0)
	path := filepath.Join(d.Name(), name)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// keep gives the file name of from the same name in to.
func keep(from, to *durable.Dir, name string) error {
	if err := unix.Linkat(from.FD(), name, to.FD(), name, 0); err != nil {
		return fmt.Errorf("cannot link %q: %w", filepath.Join(from.Name(), name), err)
	}
	return nil
}

// link gives the file name of d another name in d.
func link(d *durable.Dir, name, another string) error {
	if err := unix.Linkat(d.FD(), name, d.FD(), another, 0); err != nil {
		return fmt.Errorf("cannot link %q: %w", filepath.Join(d.Name(), name), err)
	}
	return nil
}

// carry gives the open file f a name in to: as a hard link where that can be and
// nobody else may write to the file, else as a copy. What old (may be nil) has of
// the same name and content is linked rather than copied once more.
func carry(f *os.File, to *durable.Dir, name string, old *durable.Dir) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if int(st.Uid) == os.Geteuid() && st.Mode&0o444 == 0o444 && st.Mode&0o022 == 0 {
		// By its descriptor: it is the file that was read.
		proc := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
		err := unix.Linkat(unix.AT_FDCWD, proc, to.FD(), name, unix.AT_SYMLINK_FOLLOW)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EXDEV) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EMLINK) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("cannot link %q: %w", f.Name(), err)
		}
	}
	if old != nil {
		same, err := sameContent(f, old, name)
		if err != nil {
			return err
		}
		if same {
			return keep(old, to, name)
		}
	}
	if err := write(to, name, io.NewSectionReader(f, 0, st.Size)); err != nil {
		return fmt.Errorf("cannot copy %q: %w", f.Name(), err)
	}
	return nil
}

// write makes a file in a directory nobody sees yet, so it needs no temporary
// name, and no sync of its own (see replace).
func write(d *durable.Dir, name string, content io.Reader) error {
	path := filepath.Join(d.Name(), name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	// Whatever the umask: a web server reads it.
	return errors.Join(err, f.Chmod(0o644), f.Close())
}

// sameContent reports whether the file name of d is one of f's content.
func sameContent(f *os.File, d *durable.Dir, name string) (bool, error) {
	g, err := openIn(d, name, false)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer g.Close()
	a, err := digestOf(f)
	if err != nil {
		return false, err
	}
	b, err := digestOf(g)
	return a == b, err
}

// digestOf returns the SHA-256 of the content of a regular file.
func digestOf(f *os.File) (sum [sha256.Size]byte, err error) {
	fi, err := f.Stat()
	if err != nil {
		return sum, err
	}
	if !fi.Mode().IsRegular() {
		return sum, fmt.Errorf("%q is not a regular file", f.Name())
	}
	h := sha256.New()
	_, err = io.Copy(h, io.NewSectionReader(f, 0, fi.Size()))
	return [sha256.Size]byte(h.Sum(nil)), err
}
