package arch

import (
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// digestSource fills in what the source is now.
func (e *entry) digestSource() error {
	f, fi, err := openSource(e.source)
	if err != nil {
		return err
	}
	defer f.Close()
	e.size = fi.Size()
	md, sha := md5.New(), sha256.New()
	if err := copyExactly(io.MultiWriter(md, sha), f, e); err != nil {
		return err
	}
	e.md5, e.sha256 = [md5.Size]byte(md.Sum(nil)), [sha256.Size]byte(sha.Sum(nil))
	return nil
}

// copySource writes the source to w, if it is still what it was.
func (e *entry) copySource(w io.Writer) error {
	f, _, err := openSource(e.source)
	if err != nil {
		return err
	}
	defer f.Close()
	sha := sha256.New()
	if err := copyExactly(io.MultiWriter(w, sha), f, e); err != nil {
		return err
	}
	if [sha256.Size]byte(sha.Sum(nil)) != e.sha256 {
		return e.changed()
	}
	return nil
}

// openSource opens a regular file; a pipe in a tree must not hold us up.
func openSource(path string) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fault.Refusedf("%q is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

// copyExactly copies e.size bytes, all that the file has.
func copyExactly(w io.Writer, f *os.File, e *entry) error {
	n, err := io.Copy(w, io.LimitReader(f, e.size))
	if err != nil {
		return err
	}
	more, err := f.Read(make([]byte, 1))
	if err != nil && err != io.EOF {
		return err
	}
	if n != e.size || more != 0 {
		return e.changed()
	}
	return nil
}

func (e *entry) changed() error {
	return fmt.Errorf("%q was changed while it was packed", e.source)
}
