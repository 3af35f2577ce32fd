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

// bequeath returns the records as they are to be removed. What the heirs take over
// is in the store by then: killed in between, both know of it, which does no harm.
func (p *pass) bequeath(records []*resource.Record, leaving map[string]bool) ([]*resource.Record, error) {
	kind, ok := p.engine.Kinds[records[0].Type].(bequeather)
	if !ok {
		return records, nil
	}
	heirs := p.heirs(records[0].Type, leaving)
	changed, rest := map[string]resource.Record{}, make([]*resource.Record, len(records))
	for i, r := range records {
		left, more, err := kind.Bequeath(*r, heirs)
		if err != nil {
			return nil, err
		}
		rest[i] = &left
		for _, h := range more {
			changed[h.Key] = h
			heirs[slices.IndexFunc(heirs, func(o *resource.Record) bool { return o.Key == h.Key })] = &h
		}
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
