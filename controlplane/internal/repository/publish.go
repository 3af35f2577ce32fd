package repository

import (
	"fmt"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/seed"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// An Offer is what a bundle brings to be served.
type Offer struct {
	record state.Published
	// instead is what is served when it was offered.
	instead Release
}

// Offered is what a bundle that was read brings to be served, nil when it brings
// nothing: the seed that its declaration would lay down. All of it is in the content
// store, which the caller has a lease of.
func (s *Server) Offered(info *bundle.Info, document []byte) (*Offer, error) {
	d, err := declaration.Parse(document)
	if err != nil {
		return nil, fmt.Errorf("its declaration is of no use: %w", err)
	}
	laid := map[string]digest.Digest{}
	for _, r := range d.Resources {
		if r.File == nil {
			continue
		}
		if name, ok := strings.CutPrefix(r.File.Path, (layout.Layout{}).ControllerSeed()+"/"); ok {
			laid[name] = r.File.Source
		}
	}
	if laid[seed.ListName] == "" {
		return nil, nil
	}
	p := state.Published{Bundle: info.Digest.String()}
	if p.List, err = s.blobs.Read(laid[seed.ListName], seed.MaxList); err != nil {
		return nil, err
	}
	if p.Signature, err = s.blobs.Read(laid[seed.ListName+trust.SignatureSuffix], trust.MaxSignature); err != nil {
		return nil, err
	}
	l, err := seed.Verify(p.List, p.Signature, info.Policy)
	if err != nil {
		return nil, fmt.Errorf("the list of what it brings for new machines is of no use: %w", err)
	}
	if l.Name != info.Name || l.Version != info.Version || l.Counter != info.Counter || l.Architecture != info.Architecture {
		return nil, fault.Refusedf("the list of what it brings for new machines is of %q %s for %s, counter %d", l.Name, l.Version, l.Architecture, l.Counter)
	}
	for _, f := range l.Files {
		if laid[f.Name] != f.Digest() || !s.blobs.Has(f.Digest(), f.Size) {
			return nil, fault.Refusedf("its declaration does not lay down the %q that it lists for new machines", f.Name)
		}
		p.Sources = append(p.Sources, f.Digest().String())
	}
	p.Name, p.Version, p.Architecture, p.Counter = l.Name, l.Version, l.Architecture, l.Counter
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look(true)
	o := &Offer{record: p}
	if shelf, ok := s.shelves[l.Architecture]; ok {
		o.instead = shelf.release()
	}
	return o, nil
}

// Publish records what is offered, unless it is not to be served: why says so then,
// and is "" when it is recorded already. Changed is to be called after the
// transaction.
func (o *Offer) Publish(tx *state.Tx, now time.Time) (published bool, why string, err error) {
	p, instead := o.record, o.instead
	old, err := tx.Published(p.Architecture)
	if err != nil {
		return false, "", err
	}
	if old != nil && old.Bundle == p.Bundle {
		return false, "", nil
	}
	if old != nil && old.Counter >= instead.Counter {
		instead = Release{Name: old.Name, Version: old.Version, Counter: old.Counter}
	}
	switch {
	case instead.Name != "" && instead.Name != p.Name:
		return false, fmt.Sprintf("they are served what bundle %q brought", instead.Name), nil
	case p.Counter < instead.Counter:
		return false, fmt.Sprintf("they are served %s, which is newer (counter %d)", instead.Version, instead.Counter), nil
	}
	p.At = now
	if err := tx.PutPublished(&p); err != nil {
		return false, "", err
	}
	return true, "", tx.AddEvent(&state.Event{At: now, Kind: "repository.published",
		Sentence: fmt.Sprintf("new machines are served release %s for %s (counter %d)", p.Version, p.Architecture, p.Counter)})
}
