package admin

import (
	"fmt"
	"slices"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// orphan is an orphan as `nodes` prints it.
func (d *Desk) orphan(o *state.Orphan) Node {
	n := Node{ID: o.ID, Hostname: o.Name, State: Orphan, LastSeen: d.Wire.Seen.At(o.ID)}
	if n.LastSeen.IsZero() {
		n.LastSeen = o.Last
	}
	return n
}

// orphans are the nodes that are known by their certificates alone.
func (d *Desk) orphans(tx *state.Tx) ([]Node, error) {
	var out []Node
	os, err := tx.Orphans()
	for _, o := range os {
		out = append(out, d.orphan(o))
	}
	return out, err
}

// find returns the node that ref means, or the orphan where there is no such node.
func (d *Desk) find(tx *state.Tx, ref string) (*state.Node, *NodeDetail, error) {
	n, missing := admission.FindNode(tx, ref)
	if missing == nil {
		return n, nil, nil
	}
	o, err := admission.FindOrphan(tx, ref)
	if err != nil {
		return nil, nil, err
	}
	if o == nil {
		return nil, nil, missing
	}
	return nil, &NodeDetail{Node: d.orphan(o), Key: o.Key, Modules: []string{}, Failing: []Failing{}, Reports: []*state.Report{}}, nil
}

// loses are what a node that is held owns, by its own word, and its declaration does
// not have: its host removes them when it is released.
func loses(tx *state.Tx, n *state.Node) ([]string, error) {
	inv, err := tx.Inventory(n.ID)
	if err != nil || inv == nil || n.Hold == nil {
		return nil, err
	}
	keys := map[string]bool{}
	if doc := tx.Declaration(n.ID); doc != nil {
		d, err := declaration.Parse(doc)
		if err != nil {
			return nil, err
		}
		for i := range d.Resources {
			keys[d.Resources[i].Key()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(inv.Owned), func(key string) bool { return keys[key] }), nil
}

// waiting says whom a person has to look after since a restore.
func waiting(tx *state.Tx, nodes []*state.Node, orphans []Node) (warnings []string) {
	if len(orphans) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s in no record: `mesh-controller nodes` lists them, `mesh-controller approve NODE` takes one back",
			cli.Count(len(orphans), "node is", "nodes are")))
	}
	held := 0
	for _, n := range nodes {
		if n.Member() && n.Hold != nil {
			held++
		}
	}
	if held > 0 {
		warnings = append(warnings, fmt.Sprintf("%s held back: `mesh-controller show NODE` says why and what it would lose, `mesh-controller approve NODE` releases it",
			cli.Count(held, "node is", "nodes are")))
	}
	return warnings
}
