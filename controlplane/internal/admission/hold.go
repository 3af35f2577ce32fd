package admission

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
)

// Hold keeps anything new from a node until a person approves it: it goes on holding
// what it has.
func Hold(tx *state.Tx, n *state.Node, kind state.HoldKind, sentence string, now time.Time) error {
	n.Hold = &state.Hold{Kind: kind, Sentence: sentence, At: now}
	if err := tx.PutNode(n); err != nil {
		return err
	}
	return tx.AddEvent(&state.Event{At: now, Kind: "node.held", Node: n.ID,
		Sentence: fmt.Sprintf("node %q is sent nothing new until a person approves it: %s", n.Name, sentence)})
}

// release lets a node that was held be told what it shall be.
func (o *Office) release(tx *state.Tx, n *state.Node, tags []string) error {
	was := n.Hold
	n.Hold = nil
	if was.Kind == state.Ahead {
		m, err := tx.Mesh()
		if err != nil {
			return err
		}
		// Whatever it has of earlier epochs: it may say so once more before it has taken
		// what it is sent now.
		n.Wanted.Epoch, n.Wanted.Base = m.Epoch, math.MaxUint64
	}
	for _, t := range tags {
		if !slices.Contains(n.Tags, t) {
			n.Tags = append(n.Tags, t)
		}
	}
	n.Decision = o.decision(n, "a person released it")
	if _, err := module.Assign(tx, o.Clock.Now().UTC(), n); err != nil && n.Conflict == "" {
		return err
	}
	if err := tx.PutNode(n); err != nil {
		return err
	}
	return tx.AddEvent(&state.Event{At: n.Decision.At, Kind: "node.released", Node: n.ID, Sentence: fmt.Sprintf(
		"node %q is told again what it shall be; it was %s: %s", n.Name, was.Kind, was.Sentence)})
}
