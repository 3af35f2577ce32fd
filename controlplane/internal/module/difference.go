package module

import (
	"bytes"
	"maps"
	"slices"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// A Difference is what a change means for one node: the things on its machine,
// by declaration.Resource.Key, sorted. All three may be empty: then only the
// names of resources, or their order, change.
type Difference struct {
	ID     string   `json:"id"`
	Node   string   `json:"node"`
	Appear []string `json:"appear"`
	Change []string `json:"change"`
	Go     []string `json:"go"`
}

func byKey(d *declaration.Declaration) map[string]*declaration.Resource {
	out := map[string]*declaration.Resource{}
	for i := range d.Resources {
		out[d.Resources[i].Key()] = &d.Resources[i]
	}
	return out
}

// difference compares what a node shall be until now with what it would be.
func difference(tx *state.Tx, n *state.Node, to *composition) (Difference, error) {
	out := Difference{ID: n.ID, Node: n.Name, Appear: []string{}, Change: []string{}, Go: []string{}}
	before := map[string]*declaration.Resource{}
	if doc := tx.Declaration(n.ID); doc != nil {
		d, err := declaration.Parse(doc)
		if err != nil {
			return out, err
		}
		before = byKey(d)
	}
	for _, key := range slices.Sorted(maps.Keys(to.keys)) {
		switch old := before[key]; {
		case old == nil:
			out.Appear = append(out.Appear, key)
		case !bytes.Equal(old.Spec(), to.keys[key].Spec()):
			out.Change = append(out.Change, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if to.keys[key] == nil {
			out.Go = append(out.Go, key)
		}
	}
	return out, nil
}
