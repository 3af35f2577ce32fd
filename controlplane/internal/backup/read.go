package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Read reads an open backup to its end. accept is told what is in it, take gets
// each file in its order; either ends the reading by an error, which is returned as
// it is. What take leaves is read by Read. Only when Read returns nil is anything
// of it known to be whole.
func Read(r io.Reader, accept func(*Manifest) error, take func(File, io.Reader) error) (*Manifest, error) {
	src := &source{r: r}
	t := tar.NewReader(src)
	size, err := src.next(t, manifestName)
	if err != nil {
		return nil, err
	}
	if size > maxManifest {
		return nil, damaged(fmt.Sprintf("its manifest has more than %d bytes", maxManifest))
	}
	b, err := io.ReadAll(t)
	if err != nil {
		return nil, src.fault(err)
	}
	m, err := parse(b)
	if err != nil {
		return nil, err
	}
	if err := accept(m); err != nil {
		return m, err
	}
	for _, f := range m.Files {
		size, err := src.next(t, f.Name)
		if err != nil {
			return m, err
		}
		if size != f.Size {
			return m, damaged(fmt.Sprintf("%q has %d bytes, and not %d", f.Name, size, f.Size))
		}
		if err := src.file(t, f, take); err != nil {
			return m, err
		}
	}
	if h, err := t.Next(); err == nil {
		return m, damaged(fmt.Sprintf("%.80q is behind its end", h.Name))
	} else if err != io.EOF {
		return m, src.fault(err)
	}
	// What closes the file says only at its end that it was not cut.
	if n, err := io.ReadFull(src, make([]byte, 1)); n > 0 {
		return m, damaged("something is behind its end")
	} else if err != io.EOF {
		return m, src.fault(err)
	}
	return m, nil
}

// A source remembers why it could not be read, and that it ended.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// next goes on to the file of that name.
func (s *source) next(t *tar.Reader, name string) (int64, error) {
	h, err := t.Next()
	switch {
	case err == io.EOF && errors.Is(s.err, io.EOF):
		return 0, damaged("it is cut")
	case err == io.EOF:
		return 0, damaged(fmt.Sprintf("it ends before %q", name))
	case err != nil:
		return 0, s.fault(err)
	case h.Name != name || h.Typeflag != tar.TypeReg:
		return 0, damaged(fmt.Sprintf("%.80q is where %q should be", h.Name, name))
	}
	return h.Size, nil
}

// file hands one file on and finds out whether it is what it should be.
func (s *source) file(t *tar.Reader, f File, take func(File, io.Reader) error) error {
	sum := sha256.New()
	in := io.TeeReader(t, sum)
	if err := take(f, in); err != nil {
		if s.err != nil && !errors.Is(s.err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return s.fault(err)
		}
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return s.fault(err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.sum() {
		return damaged(fmt.Sprintf("%q is not what its SHA-256 says", f.Name))
	}
	return nil
}

// fault is what it means that it could not be read: what the system says, or that
// the file is not what it was.
func (s *source) fault(err error) error {
	var coded *fault.Error
	switch {
	case errors.As(s.err, &coded):
		return s.err // it is said already
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return damaged("it is cut")
	}
	return damaged(err.Error())
}
