package service

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/loop"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// An Unowned is a thing that this node was told to have once, and was never said to
// have removed; the host has no record of it, so that it is not looked after and
// would stay for ever.
type Unowned struct {
	Key  string           `json:"key"`
	ID   string           `json:"id"`
	Type declaration.Type `json:"type"`
	// There is "as declared", "differs", "gone" or "unknown".
	There       string   `json:"there"`
	Differences []string `json:"differences,omitempty"`
	// Adopted: the host owns it now.
	Adopted bool `json:"adopted,omitempty"`

	record resource.Record
}

// The words for what a look at an unowned thing finds, beside unknown.
const (
	asDeclared = "as declared"
	differs    = "differs"
	gone       = "gone"
)

// Unowned implements Host: it asks the control plane, and looks at each thing now.
func (s *Service) Unowned(ctx context.Context) ([]Unowned, error) {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	switch {
	case s.mesh() == "":
		return nil, fault.Refusedf("cannot say what is unowned: this machine is in no mesh, and the control plane of its mesh would know")
	case l == nil || !l.State().Connected:
		return nil, fault.Failedf("cannot say what is unowned: the control plane knows, and the link to it is down").
			Hint("mesh-host status says why")
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	a, err := l.Unowned(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot say what is unowned: %w", err)
	}
	records, err := s.store.Records()
	if err != nil {
		return nil, err
	}
	w, d, err := s.engine.InForce()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, r := range records {
		known[r.Key] = true
	}
	for i := 0; d != nil && i < len(d.Resources); i++ {
		known[d.Resources[i].Key()] = true // the next pass is about it
	}
	out := []Unowned{}
	q := s.engine.Inquire(patience)
	for _, doc := range a.Declarations {
		one, err := declaration.Parse(doc)
		if err != nil || len(one.Resources) != 1 {
			return nil, fault.Refusedf("cannot say what is unowned: the control plane told what this host cannot read: %w", err)
		}
		r := one.Resources[0]
		if known[r.Key()] {
			continue
		}
		u := Unowned{Key: r.Key(), ID: r.ID, Type: r.Type}
		u.record = resource.Record{Key: u.Key, ID: u.ID, Type: u.Type, Spec: r.Spec(), Declaration: digest.FromBytes(doc).String()}
		if w != nil {
			u.record.Mesh, u.record.Epoch, u.record.Generation = w.Mesh, w.Epoch, w.Generation
		}
		st, err := q.Check(ctx, resource.Want{Resource: r, Spec: u.record.Spec}, nil)
		switch {
		case err != nil:
			u.There, u.Differences = unknown, []string{err.Error()}
		case st.Same:
			u.There = asDeclared
		case st.Exists:
			u.There, u.Differences = differs, st.Differences
		default:
			u.There = gone
		}
		out = append(out, u)
	}
	return out, nil
}

// AdoptRequest says what is to be adopted: ids or keys, or all that is as it was
// declared.
type AdoptRequest struct {
	IDs    []string `json:"ids,omitempty"`
	All    bool     `json:"all,omitempty"`
	DryRun bool     `json:"dry_run,omitempty"`
}

// Adopt implements Host: it makes records of what is unowned and still as it was
// declared, and asks for a pass, which removes what nobody declares any more.
func (s *Service) Adopt(ctx context.Context, q AdoptRequest) ([]Unowned, error) {
	all, err := s.Unowned(ctx)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(all, q)
	if err != nil || q.DryRun {
		return chosen, err
	}
	var records []resource.Record
	for i := range chosen {
		chosen[i].record.At = s.Clock.Now().UTC()
		records = append(records, chosen[i].record)
	}
	if err := s.store.Commit(records...); err != nil {
		return nil, fmt.Errorf("cannot adopt: %w", err)
	}
	for i := range chosen {
		chosen[i].Adopted = true
		s.Log.Info("adopted", "resource", chosen[i].Key)
	}
	s.loop.Trigger(ctx, loop.TriggerPerson)
	return chosen, nil
}

// choose picks what is to be adopted. What a person named is refused when it is not
// as it was declared: the host would not know what it owned.
func choose(all []Unowned, q AdoptRequest) ([]Unowned, error) {
	if q.All {
		return slices.DeleteFunc(all, func(u Unowned) bool { return u.There != asDeclared }), nil
	}
	out := []Unowned{}
	for _, id := range q.IDs {
		i := slices.IndexFunc(all, func(u Unowned) bool { return u.ID == id || u.Key == id })
		if i < 0 {
			return nil, fault.Refusedf("cannot adopt %q: there is nothing unowned of that id", id).Hint("mesh-host owned --unowned lists what there is")
		}
		if u := all[i]; u.There != asDeclared {
			return nil, fault.Refusedf("cannot adopt %q: it is not as it was declared (%s)", id, strings.Join(append([]string{u.There}, u.Differences...), ", ")).
				Hint("declare it to have it made so, or take it away by hand")
		}
		out = append(out, all[i])
	}
	return out, nil
}
