package module

import (
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A set is all modules as they are in one transaction. What is costly is done
// once, however many nodes it is for: each rule is read once, each document when
// it is first asked for, and each composition for all nodes that have the same
// modules.
type set struct {
	tx       *state.Tx
	now      time.Time
	modules  []placed
	parsed   map[string]*declaration.Declaration
	composed map[string]composed
	brought  map[string]bool
	had      map[string]map[string]*had
	// note, if there is one, is told of each node that changes, before it does.
	note func(n *state.Node, to *composition) error
}

// placed is a module and where it is present: one that was declared, or a bundle that
// was pushed, which is for nodes of its architecture.
type placed struct {
	*state.Module
	placement
	// key is what its document is kept under.
	key          string
	architecture string
}

// holds says whether the module is present on a node.
func (p *placed) holds(n *state.Node) bool {
	return p.placement.holds(n) && (p.architecture == "" || p.architecture == bundle.Architecture(n.Profile.Architecture))
}

// composed is a composition, or why there can be none.
type composed struct {
	*composition
	impossible error
}

func load(tx *state.Tx, now time.Time) (*set, error) {
	ms, err := tx.Modules()
	if err != nil {
		return nil, err
	}
	s := &set{tx: tx, now: now, parsed: map[string]*declaration.Declaration{}, composed: map[string]composed{}, brought: map[string]bool{}, had: map[string]map[string]*had{}}
	for _, m := range ms {
		p, err := parsePlacement(m.Placement)
		if err != nil {
			return nil, fault.Failedf("cannot read module %q: %w", m.Name, err)
		}
		s.modules = append(s.modules, placed{Module: m, placement: p, key: m.Name})
		s.brought[m.Name] = m.From != ""
	}
	pushed, err := tx.AllPushed()
	if err != nil {
		return nil, err
	}
	for _, b := range pushed {
		if len(b.Placement) == 0 {
			continue
		}
		p, err := parsePlacement(b.Placement)
		if err != nil {
			return nil, fault.Failedf("cannot read module %q: %w", b.Name, err)
		}
		m := &state.Module{Name: b.Name, Digest: b.Declaration, Placement: b.Placement, Changed: b.At}
		s.modules = append(s.modules, placed{m, p, b.Key(), b.Architecture})
	}
	slices.SortStableFunc(s.modules, func(a, b placed) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}

func (s *set) document(name string) (*declaration.Declaration, error) {
	if d := s.parsed[name]; d != nil {
		return d, nil
	}
	d, err := declaration.Parse(s.tx.ModuleDocument(name))
	if err != nil {
		return nil, fault.Failedf("cannot read module %q: %w", name, err)
	}
	s.parsed[name] = d
	return d, nil
}

// on returns the keys of the modules that are present on a node, sorted.
func (s *set) on(n *state.Node) []string {
	out := []string{}
	for _, m := range s.modules {
		if m.holds(n) {
			out = append(out, m.key)
		}
	}
	return out
}

// nameOf is the name of the module of that key.
func nameOf(key string) string {
	name, _, _ := strings.Cut(key, "/")
	return name
}

// compose makes the composition of modules, or finds out why there is none. Its
// own error is the state's.
func (s *set) compose(modules []string) (composed, error) {
	key := strings.Join(modules, " ") // a name has no space
	if c, ok := s.composed[key]; ok {
		return c, nil
	}
	var parts []part
	for _, name := range modules {
		d, err := s.document(name)
		if err != nil {
			return composed{}, err
		}
		parts = append(parts, part{nameOf(name), d, s.brought[name]})
	}
	c, err := compose(parts)
	s.composed[key] = composed{c, err}
	return s.composed[key], nil
}

// Assign composes what a node shall be and writes it to n, which the caller
// puts. It reports whether there is a new generation. When the composition is
// not possible it says so on the node, which keeps the declaration it had, and
// returns why: an error the caller may pass over.
func Assign(tx *state.Tx, now time.Time, n *state.Node) (changed bool, err error) {
	s, err := load(tx, now)
	if err != nil {
		return false, err
	}
	return s.assign(n)
}

func (s *set) assign(n *state.Node) (bool, error) {
	n.Conflict = ""
	fail := func(err error) (bool, error) {
		n.Conflict = err.Error()
		return false, err
	}
	if reads := n.Profile.Schema; reads > 0 && reads < declaration.Schema {
		return fail(fault.Refusedf("its host is too old: it reads declarations up to schema %d only", reads))
	}
	c, err := s.compose(s.on(n))
	switch {
	case err != nil:
		return false, err
	case c.impossible != nil:
		return fail(c.impossible)
	case n.Wanted.Generation > 0 && n.Wanted.Content == c.content:
		n.Wanted.Sources = c.sources // a person may have taken up what a machine brought
		return false, nil
	}
	doc, err := c.stamp(n.Name, n.Wanted.Generation+1)
	if err != nil {
		return fail(err)
	}
	if s.note != nil {
		if err := s.note(n, c.composition); err != nil {
			return false, err
		}
	}
	return true, s.succeed(n, c.composition, doc)
}

// succeed makes doc, stamped from c, the node's next generation.
func (s *set) succeed(n *state.Node, c *composition, doc []byte) error {
	mesh, err := s.tx.Mesh()
	if err != nil {
		return err
	}
	if err := s.leavings(n, c); err != nil {
		return err
	}
	w := &n.Wanted
	base := w.Known(mesh.Epoch)
	*w = state.Wanted{
		Generation: w.Generation + 1, Epoch: mesh.Epoch, Base: base,
		Digest: digest.FromBytes(doc).String(), Size: int64(len(doc)), Content: c.content, Sources: c.sources, At: s.now,
	}
	return s.tx.PutDeclaration(n.ID, doc)
}

// On returns the names of the modules that are present on a node.
func On(tx *state.Tx, n *state.Node) ([]string, error) {
	if !n.Member() {
		return []string{}, nil
	}
	s, err := load(tx, time.Time{})
	if err != nil {
		return nil, err
	}
	out := s.on(n)
	for i := range out {
		out[i] = nameOf(out[i])
	}
	return out, nil
}
