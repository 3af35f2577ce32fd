package module

import (
	"maps"
	"slices"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// leavings writes down what the node had and has not in c, until the node says that
// it is gone: a machine that lost its store would not know of it. What comes back is
// struck out.
func (s *set) leavings(n *state.Node, c *composition) error {
	if err := s.tx.DropLeavings(n.ID, slices.Collect(maps.Keys(c.keys))...); err != nil {
		return err
	}
	if n.Wanted.Generation == 0 {
		return nil
	}
	before, err := s.before(n)
	if err != nil {
		return err
	}
	for key, doc := range before {
		if c.keys[key] != nil {
			continue
		}
		if doc.alone == nil {
			if doc.alone, err = alone(doc.resource); err != nil {
				return err
			}
		}
		if err := s.tx.PutLeaving(n.ID, key, doc.alone); err != nil {
			return err
		}
	}
	return nil
}

// A had is a resource that nodes have, and the declaration of it alone.
type had struct {
	resource *declaration.Resource
	alone    []byte
}

// before returns what a node has, by key; it is read once for all nodes that have the
// same.
func (s *set) before(n *state.Node) (map[string]*had, error) {
	shared := n.Wanted.Content != "" // one that is to be composed anew has what nobody else has
	if b, ok := s.had[n.Wanted.Content]; ok && shared {
		return b, nil
	}
	d, err := declaration.Parse(s.tx.Declaration(n.ID))
	if err != nil {
		return nil, err
	}
	out := map[string]*had{}
	for key, r := range byKey(d) {
		out[key] = &had{resource: r}
	}
	if shared {
		s.had[n.Wanted.Content] = out
	}
	return out, nil
}

func alone(r *declaration.Resource) ([]byte, error) {
	one := *r
	one.After, one.RestartOn = nil, nil
	if p := one.Process; p != nil && p.Rollback {
		kept := *p
		kept.Rollback = false // it needs the file of its executable beside it
		one.Process = &kept
	}
	d := &declaration.Declaration{Schema: declaration.Schema, Name: "node", Resources: []declaration.Resource{one}}
	return d.Marshal()
}
