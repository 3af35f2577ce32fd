package input

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// ErrNotRegular is in the chain of the error for what is there and no regular file.
var ErrNotRegular = errors.New("is not a regular file")

// Regular opens a regular file. What else stands in its place is ErrNotRegular and
// holds nobody up: the open(2) of a pipe waits for its other end, and no
// signal that is handled ends that.
func Regular(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fault.Failedf("%q %w", path, ErrNotRegular)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

// ReadFile reads a regular file of at most max bytes; a larger one is a fault of
// kind Refused.
func ReadFile(path string, max int64) ([]byte, error) {
	f, _, err := Regular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		err = fault.Refusedf("%q has more than %d bytes", path, max)
	}
	return b, err
}

// Folder opens a directory. A pipe in its place holds nobody up.
func Folder(path string) (*os.Root, error) {
	// os.OpenRoot opens before it looks.
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
	}
	return os.OpenRoot(path)
}
