package repository

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/seed"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A shelf is what is served for one architecture: a list that was verified, and
// its files, verified and open. It is counted: the last who reads from a shelf
// that was replaced closes it.
type shelf struct {
	*seed.List
	// list and signature are the list's bytes, from where they are.
	list, signature []byte
	from            From
	files           map[string]*os.File

	users int // of Server.mu; one is that it is served
}

// From is where something that is served comes from.
type From string

// The two places.
const (
	FromSeed From = "seed"
	FromPush From = "push"
)

// fill opens and verifies the files of the list.
func (s *shelf) fill(open func(seed.File) (*os.File, error)) error {
	s.files, s.users = map[string]*os.File{}, 1
	for _, f := range s.Files {
		file, err := open(f)
		if err == nil {
			s.files[f.Name] = file
			err = verify(file, f)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("cannot serve %q of release %s: %w", f.Name, s.Version, err), s.close())
		}
	}
	return nil
}

func verify(file *os.File, f seed.File) error {
	fi, err := file.Stat()
	switch {
	case err != nil:
		return err
	case !fi.Mode().IsRegular():
		return fault.Refusedf("it is no regular file")
	case fi.Size() != f.Size:
		return fault.Refusedf("it has %d bytes, not %d", fi.Size(), f.Size)
	}
	got, err := digest.SHA256.FromReader(io.NewSectionReader(file, 0, f.Size))
	if err == nil && got != f.Digest() {
		err = fault.Refusedf("digest mismatch: it is %s, not %s", got, f.Digest())
	}
	return err
}

func (s *shelf) close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
