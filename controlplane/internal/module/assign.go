package module

import (
	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A set is all modules as they are in one transaction; each document is read
// when it is first asked for, however many nodes have it.
type set struct {
	tx      *state.Tx
	modules []*state.Module
	parsed  map[string]*declaration.Declaration
}

func load(tx *state.Tx) (*set, error) {
	ms, err := tx.Modules()
	if err != nil {
		return nil, err
	}
	return &set{tx: tx, modules: ms, parsed: map[string]*declaration.Declaration{}}, nil
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

// Assign composes what a node shall be and writes it to n, which the caller
// puts. It reports whether there is a new generation. When the composition is
// not possible it says so on the node, which keeps the declaration it had, and
// returns why: an error the caller may pass over.
func Assign(tx *state.Tx, n *state.Node) (changed bool, err error) {
	s, err := load(tx)
	if err != nil {
		return false, err
	}
	return s.assign(n)
}

func (s *set) assign(n *state.Node) (bool, error) {
	var parts []Part
	for _, m := range s.modules {
		if !present(m.Placement, n) {
			continue
		}
		d, err := s.document(m.Name)
		if err != nil {
			return false, err
		}
		parts = append(parts, Part{m.Name, d})
	}
	fail := func(err error) (bool, error) {
		n.Conflict = err.Error()
		return false, err
	}
	if reads := n.Profile.Schema; reads > 0 && reads < declaration.Schema {
		return fail(fault.Refusedf("node %q reads declarations up to schema %d only: its host is too old", n.Name, reads))
	}
	_, bare, err := Compose(n.Name, 0, parts)
	if err != nil {
		return fail(err)
	}
	n.Conflict = ""
	content := digest.FromBytes(bare).String()
	if n.Wanted.Generation > 0 && n.Wanted.Content == content {
		return false, nil
	}
	generation := n.Wanted.Generation + 1
	d, doc, err := Compose(n.Name, generation, parts)
	if err != nil {
		return fail(err)
	}
	n.Wanted = state.Wanted{
		Generation: generation, Digest: digest.FromBytes(doc).String(), Size: int64(len(doc)), Content: content,
	}
	for _, src := range d.Sources() {
		n.Wanted.Sources = append(n.Wanted.Sources, src.String())
	}
	return true, s.tx.PutDeclaration(n.ID, doc)
}

// On returns the names of the modules that are present on a node.
func On(tx *state.Tx, n *state.Node) ([]string, error) {
	ms, err := tx.Modules()
	out := []string{}
	for _, m := range ms {
		if present(m.Placement, n) {
			out = append(out, m.Name)
		}
	}
	return out, err
}
