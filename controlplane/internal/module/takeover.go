package module

import (
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/name"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// TakeOver makes the declaration a machine enrolled with a module of this node
// alone, so that the mesh declares the same things and nothing on the machine
// changes. Its name is the document's, with a number behind it when another
// module has that name.
//
// The module is never another node's, even if that holds the same bytes: what
// a machine says about itself must not make it a recipient of what is declared
// for others later. Nor is the content looked for: the node has it.
func TakeOver(tx *state.Tx, now time.Time, n *state.Node, doc []byte) (string, error) {
	d, err := declaration.Parse(doc)
	if err != nil {
		return "", err
	}
	placement := []string{"node=" + n.Name}
	sum := digest.FromBytes(doc).String()
	for i := 1; ; i++ {
		name := name.Numbered(d.Name, i)
		m, err := tx.Module(name)
		if err != nil {
			return "", err
		}
		if m != nil && m.Digest == sum && slices.Equal(m.Placement, placement) {
			return name, nil
		}
		if m != nil {
			continue
		}
		m = &state.Module{Name: name, Version: 1, Digest: sum, Placement: placement, Changed: now}
		if err := tx.PutModule(m, doc); err != nil {
			return "", err
		}
		return name, tx.AddEvent(&state.Event{At: now, Kind: "module.taken-over", Node: n.ID,
			Sentence: fmt.Sprintf("what node %q had is module %q now", n.Name, name)})
	}
}
