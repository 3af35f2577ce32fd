package module

import (
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/name"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// Brought is a declaration that a machine brought along, read and composed: what
// is costly is done before the transaction in which others wait.
type Brought struct {
	doc    []byte
	sum    string
	parsed *declaration.Declaration
	// alone is the composition of nothing else, under the document's own name.
	alone composed
}

// Bring reads a declaration that a machine brought along.
func Bring(doc []byte) (*Brought, error) {
	d, err := declaration.Parse(doc)
	if err != nil {
		return nil, err
	}
	b := &Brought{doc: doc, sum: digest.FromBytes(doc).String(), parsed: d}
	b.alone.composition, b.alone.impossible = compose([]part{{d.Name, d, true}})
	return b, nil
}

// Is says whether it was made of doc.
func (b *Brought) Is(doc []byte) bool { return b.sum == digest.FromBytes(doc).String() }

// AssignBrought is Assign for a node that b was just taken over from, as name.
func AssignBrought(tx *state.Tx, now time.Time, n *state.Node, name string, b *Brought) (bool, error) {
	s, err := load(tx, now)
	if err != nil {
		return false, err
	}
	s.parsed[name] = b.parsed
	if name == b.parsed.Name {
		s.composed[name] = b.alone
	}
	return s.assign(n)
}

// TakeOver makes the declaration a machine enrolled with a module of this node
// alone, so that the mesh declares the same things and nothing on the machine
// changes. Its name is the document's, with a number behind it when another
// module has that name.
//
// The module is never another node's nor a person's, even if that holds the
// same bytes: what a machine says about itself must not make it a recipient of
// what is declared for others later. It is marked as the machine's, so that a
// person who declares that name has to say where. Nor is the content looked
// for: the node has it.
func TakeOver(tx *state.Tx, now time.Time, n *state.Node, b *Brought) (string, error) {
	for i := 1; ; i++ {
		name := name.Numbered(b.parsed.Name, i)
		m, err := tx.Module(name)
		if err != nil {
			return "", err
		}
		if m != nil && m.From == n.ID && m.Digest == b.sum {
			return name, nil
		}
		ps, err := tx.PushedOf(name)
		if err != nil {
			return "", err
		}
		// A bundle's name is that bundle's, also before it is placed.
		if m != nil && m.From != n.ID || m == nil && len(ps) > 0 {
			continue
		}
		version := uint64(1)
		if m != nil {
			version = m.Version + 1 // it came back, and brings another
		}
		m = &state.Module{Name: name, Version: version, Digest: b.sum, Placement: []string{"node=" + n.Name}, Changed: now, From: n.ID}
		if err := tx.PutModule(m, b.doc); err != nil {
			return "", err
		}
		return name, tx.AddEvent(&state.Event{At: now, Kind: "module.taken-over", Node: n.ID,
			Sentence: fmt.Sprintf("what node %q had is module %q now", n.Name, name)})
	}
}
