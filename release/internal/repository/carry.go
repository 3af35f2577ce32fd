package repository

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// openIn opens the file name of d for reading; with follow it may be a symlink to
// another name in d, as repo-add leaves them: one that leads elsewhere would make
// whatever it leads to a file of the repository. A FIFO does not block it.
func openIn(d *durable.Dir, name string, follow bool) (*os.File, error) {
	path := filepath.Join(d.Name(), name)
	const flags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOFOLLOW
	fd, err := unix.Openat(d.FD(), name, flags, 0)
	if follow && errors.Is(err, unix.ELOOP) {
		var target string
		if target, err = twin(d, name); err != nil {
			return nil, err
		}
		fd, err = unix.Openat(d.FD(), target, flags, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// twin is the name in d that the symlink name leads to.
func twin(d *durable.Dir, name string) (string, error) {
	b := make([]byte, unix.NAME_MAX+1)
	n, err := unix.Readlinkat(d.FD(), name, b)
	if err != nil {
		return "", &os.PathError{Op: "readlink", Path: filepath.Join(d.Name(), name), Err: err}
	}
	if n > unix.NAME_MAX || bytes.ContainsRune(b[:n], '/') {
		return "", fault.Refusedf("%q is a symlink that leads out of the directory", name).Hint("put the file in its place")
	}
	return string(b[:n]), nil
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
	fd, err := unix.Openat(d.FD(), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return &os.PathError{Op: "create", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
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
