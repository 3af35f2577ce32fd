package admission

import (
	"fmt"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/fault"
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

// release lets a held node have what it is to have, because a person says so.
func (o *Office) release(tx *state.Tx, n *state.Node, as string, tags []string) error {
	if as != "" || len(tags) > 0 {
		return fault.Usagef("cannot give node %q another name or tags: it has its own, and is only held", n.Name)
	}
	was := n.Hold
	n.Hold = nil
	if err := tx.PutNode(n); err != nil {
		return err
	}
	return tx.AddEvent(&state.Event{At: o.Clock.Now().UTC(), Kind: "node.released", Node: n.ID,
		Sentence: fmt.Sprintf("node %q, which was %s, is approved", n.Name, was.Kind)})
}
