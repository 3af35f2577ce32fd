package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// A folder is files by name, in a directory or in an archive. A file that is not
// there is fs.ErrNotExist.
type folder interface {
	file(name string) (content io.ReadCloser, size int64, err error)
}

// A directory is the path of one. No link in it leads out of it.
type directory string

func (d directory) file(name string) (io.ReadCloser, int64, error) {
	root, err := input.Folder(string(d))
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	// A pipe in the place of a file does not hold us up.
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, hostile(name, err)
	}
	size, err := regular(f, name)
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

// hostile tells what whoever made the directory did from what is wrong with the disk.
func hostile(name string, err error) error {
	var path *fs.PathError
	switch {
	// os.Root has no error to compare with (os.errPathEscapes).
	case errors.As(err, &path) && path.Err.Error() == "path escapes from parent":
		return fault.Refusedf("%q is a link that leads out of it", name)
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.ENXIO):
		return fault.Refusedf("%q is not a regular file: %w", name, err)
	}
	return err
}

// regular returns the size of a regular file.
func regular(f *os.File, name string) (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !fi.Mode().IsRegular() {
		return 0, fault.Refusedf("%q is not a regular file", name)
	}
	return fi.Size(), nil
}

// contentOf reads a small file of a folder.
func contentOf(f folder, name string) ([]byte, error) {
	r, _, err := f.file(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := bounded(r, maxDocument)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	return b, nil
}
