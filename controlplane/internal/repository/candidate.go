package repository

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/seed"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
)

// candidates are the shelves that could be, with a verified list and no files yet.
type candidates struct {
	shelves []*shelf // the newest first; of two as new, the one that was pushed
	// unread are the places that could not be read: what is from there may be there
	// still. halves are the architectures of which one could not be filled.
	unread []From
	halves []string

	plot  *plot // nil when there is no seed
	blobs *content.Store
}

// open is how the files of either place are opened.
func (c *candidates) open(from From) func(seed.File) (*os.File, error) {
	if from == FromSeed {
		return func(f seed.File) (*os.File, error) { return c.plot.open(f.Name) }
	}
	return func(f seed.File) (*os.File, error) { return c.blobs.Open(f.Digest()) }
}

func (c *candidates) close() {
	if c.plot != nil {
		c.plot.close()
	}
}

func (s *Server) candidates() *candidates {
	c := &candidates{blobs: s.blobs}
	policy, err := s.trusted()
	if err != nil {
		s.fault(fmt.Errorf("cannot serve anything to new machines: %w", err))
		return c
	}
	if err := s.pushed(c, policy); err != nil {
		c.unread = append(c.unread, FromPush)
		s.fault(fmt.Errorf("cannot serve what was pushed: %w", err))
	}
	if err := s.sown(c, policy); err != nil {
		c.unread = append(c.unread, FromSeed)
		s.fault(fmt.Errorf("cannot serve the seed: %w", err))
	}
	slices.SortStableFunc(c.shelves, func(a, b *shelf) int { return cmp.Compare(b.Counter, a.Counter) })
	return c
}

// pushed adds what the state names.
func (s *Server) pushed(c *candidates, policy *trust.Policy) error {
	var records []*state.Published
	err := s.store.View(func(tx *state.Tx) (err error) {
		records, err = tx.AllPublished()
		return err
	})
	for _, p := range records {
		l, err := seed.Verify(p.List, p.Signature, policy)
		if err != nil {
			s.fault(fmt.Errorf("cannot serve release %s for %s, which was pushed: %w", p.Version, p.Architecture, err))
			continue
		}
		c.shelves = append(c.shelves, &shelf{List: l, list: p.List, signature: p.Signature, from: FromPush})
	}
	return err
}

// sown adds the seed. Where there is none, or no list of one yet, that is no error.
func (s *Server) sown(c *candidates, policy *trust.Policy) (err error) {
	if c.plot, err = openPlot(s.seed); err != nil {
		c.plot = nil
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	list, err := c.plot.read(seed.ListName, seed.MaxList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	signature, err := c.plot.read(seed.ListName+trust.SignatureSuffix, trust.MaxSignature)
	if err != nil {
		return err
	}
	l, err := seed.Verify(list, signature, policy)
	if err == nil {
		c.shelves = append(c.shelves, &shelf{List: l, list: list, signature: signature, from: FromSeed})
	}
	return err
}
