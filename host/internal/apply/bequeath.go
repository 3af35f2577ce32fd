package apply

import (
	"maps"
	"slices"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// bequeather is what a kind implements whose resources may need what was made for
// others: files lie in the directories of earlier ones.
type bequeather interface {
	// Bequeath is asked before gone is taken away, while its heirs stay. It returns
	// gone without what must stay for them, and the heirs that take it along one day.
	Bequeath(gone resource.Record, heirs []*resource.Record) (rest resource.Record, changed []resource.Record, err error)
}

// bequeath returns the records as they are to be removed, all at the same time. What
// the heirs take over is in the store by then: killed in between, both know of it,
// which does no harm.
func (p *pass) bequeath(records []*resource.Record, leaving map[string]bool) ([]*resource.Record, error) {
	kind, ok := p.engine.Kinds[records[0].Type].(bequeather)
	if !ok {
		return records, nil
	}
	rest, heirs, changed := slices.Clone(records), p.heirs(records[0].Type, leaving), map[string]resource.Record{}
	know := func(among []*resource.Record, more []resource.Record) {
		for _, h := range more {
			changed[h.Key] = h
			among[slices.IndexFunc(among, func(o *resource.Record) bool { return o.Key == h.Key })] = &h
		}
	}
	// Those that go with it know what it knows, and it still does: nobody can say
	// which of them goes last, or cannot be removed.
	for i := range rest {
		others := slices.Delete(slices.Clone(rest), i, i+1)
		_, more, err := kind.Bequeath(*rest[i], others)
		if err != nil {
			return nil, err
		}
		know(rest, more)
	}
	for i, r := range rest {
		left, more, err := kind.Bequeath(*r, heirs)
		if err != nil {
			return nil, err
		}
		rest[i] = &left
		know(heirs, more)
	}
	if err := p.engine.Store.Restamp(slices.Collect(maps.Values(changed))); err != nil {
		return nil, err
	}
	for key, h := range changed {
		p.records[key] = &h
	}
	return rest, nil
}

// heirs are the records of a type that stay.
func (p *pass) heirs(t declaration.Type, leaving map[string]bool) []*resource.Record {
	var out []*resource.Record
	for key, r := range p.records {
		if r.Type == t && !leaving[key] {
			out = append(out, r)
		}
	}
	return out
}
