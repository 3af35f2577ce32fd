package admission

import (
	"fmt"
	"math"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Hold keeps anything new from a node until a person approves it: it goes on holding
// what it has.
func Hold(tx *state.Tx, n *state.Node, kind state.HoldKind, have *link.Position, sentence string, now time.Time) error {
	n.Hold = &state.Hold{Kind: kind, Sentence: sentence, At: now, Have: have}
	if err := tx.PutNode(n); err != nil {
		return err
	}
	return tx.AddEvent(&state.Event{At: now, Kind: "node.held", Node: n.ID,
		Sentence: fmt.Sprintf("node %q is sent nothing new until a person approves it: %s", n.Name, sentence)})
}

// maxEpochs is how much later an epoch may be, by a node's word, than this one.
const maxEpochs = 1000

// overtake puts what a node is to have behind what it has, in the order of the mesh: a
// host takes nothing that is older than what it was told.
func (o *Office) overtake(tx *state.Tx, n *state.Node, have *link.Position) error {
	m, err := tx.Mesh()
	if err != nil {
		return err
	}
	if have != nil && have.Epoch > m.Epoch {
		if have.Epoch-m.Epoch > maxEpochs {
			return fault.Refusedf("cannot approve node %q: it says that it is in epoch %d, and this control plane is in epoch %d", n.Name, have.Epoch, m.Epoch).
				Hint("have it enrol anew: `mesh-controller token create --rejoin %s`", n.Name)
		}
		m.Epoch = have.Epoch
		if err := tx.PutMesh(m); err != nil {
			return err
		}
	}
	if have != nil && have.Epoch == m.Epoch && have.Generation >= n.Wanted.Generation {
		n.Wanted.Generation = have.Generation
		n.Wanted.Content = "" // so that it is composed anew, with the next generation
	}
	// Whatever it has of earlier epochs: it may say so once more before it has taken what
	// it is sent now.
	n.Wanted.Epoch, n.Wanted.Base = m.Epoch, math.MaxUint64
	return nil
}

// release lets a node that was held be told what it shall be.
func (o *Office) release(tx *state.Tx, n *state.Node, tags []string) error {
	was := n.Hold
	n.Hold = nil
	switch {
	case was.Kind == state.Ahead:
		if err := o.overtake(tx, n, was.Have); err != nil {
			return err
		}
	case o.Linked == nil || !o.Linked(n.ID):
		// Nobody is connected whom the other could be told from: the next contact is
		// believed.
		if err := tx.DropLine(n.ID); err != nil {
			return err
		}
	}
	n.Tags = merged(n.Tags, tags)
	n.Decision = o.decision(n, "a person released it")
	if n.Member() { // one that is retiring has its last declaration
		if _, err := module.Assign(tx, n.Decision.At, n); err != nil && n.Conflict == "" {
			return err
		}
	}
	if err := tx.PutNode(n); err != nil {
		return err
	}
	return tx.AddEvent(&state.Event{At: n.Decision.At, Kind: "node.released", Node: n.ID, Sentence: fmt.Sprintf(
		"node %q is told again what it shall be; it was %s: %s", n.Name, was.Kind, was.Sentence)})
}
