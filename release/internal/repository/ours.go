package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
)

// replaceable reads what is to be replaced and holds that it is a repository of ours
// and nothing else: what lists it is signed, and it lists each package, or one that
// is newer and leaves this one its own signature. Anything else is somebody's.
func replaceable(ctx context.Context, p *place.Place, v Verifier) (*state, error) {
	s, err := readState(p, v)
	if err != nil {
		return nil, notOurs(err)
	}
	if err := s.ours(ctx, v); err != nil {
		s.close()
		return nil, notOurs(err)
	}
	return s, nil
}

func (s *state) ours(ctx context.Context, v Verifier) error {
	if s.count == 0 {
		return nil
	}
	if s.db == nil {
		return fault.Refusedf("it is not empty, and has no %q", dbName)
	}
	if s.old != "" {
		return fault.Refusedf("%q is there, which no database lists", s.old)
	}
	if err := s.whole(); err != nil {
		return err
	}
	if err := s.twins(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.items)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.mine(s.items[name], v); err != nil {
			return fmt.Errorf("package %q: %w", name, err)
		}
	}
	return nil
}

// mine holds that a package came here by us. Of one that is listed its size is known
// to be right and its signature is compared; one that is not is read.
func (s *state) mine(i *item, v Verifier) error {
	if i.entry == nil {
		return s.checkItem(i, v)
	}
	g, err := openIn(s.dir, i.File+sigSuffix, false)
	if err != nil {
		return err
	}
	defer g.Close()
	signature, err := readAll(g, maxSignature)
	if err == nil && !bytes.Equal(signature, i.entry.signature) {
		err = fault.Refusedf("its signature is not what the database says")
	}
	return err
}

// notOurs says of what is wrong with the directory that would be replaced that it is
// wrong there. What could not be looked at stays a failure.
func notOurs(err error) error {
	var path *fs.PathError
	var said *fault.Error
	switch {
	case errors.As(err, &path), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &said) && said.Kind != fault.Refused:
		return err
	}
	return fault.Refusedf("what is there is no repository of ours: %w", err).
		Hint("look at what it holds and move it elsewhere, or give another --to")
}

// twins holds that the long names of the databases are those of the same files.
func (s *state) twins() error {
	for _, name := range []string{dbName, filesName} {
		for _, suffix := range []string{"", sigSuffix} {
			long := name + longSuffix + suffix
			f, err := openIn(s.dir, long, true)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			same, err := sameDatabase(f, s.dir, name+suffix)
			f.Close()
			if err == nil && !same {
				err = fault.Refusedf("%q is not the same as %q", long, name+suffix)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// sameDatabase reports whether f is, or has the bytes of, the file name of d.
func sameDatabase(f *os.File, d *durable.Dir, name string) (bool, error) {
	g, err := openIn(d, name, true)
	if err != nil {
		return false, err
	}
	defer g.Close()
	one, err := f.Stat()
	if err != nil {
		return false, err
	}
	two, err := g.Stat()
	if err != nil || os.SameFile(one, two) || one.Size() != two.Size() {
		return err == nil && os.SameFile(one, two), err
	}
	a, err := digestOf(f)
	if err != nil {
		return false, err
	}
	b, err := digestOf(g)
	return a == b, err
}
