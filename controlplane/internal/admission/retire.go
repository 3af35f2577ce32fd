package admission

import (
	"fmt"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Retire has a node take away what it owns, or let go of it, and leave, in the
// caller's transaction. One that is away does so when it comes back. It says whether
// the node was told already.
func (o *Office) Retire(tx *state.Tx, ref string, letGo bool) (n *state.Node, already bool, err error) {
	if n, err = FindNode(tx, ref); err != nil {
		return nil, false, err
	}
	switch {
	case n.State == state.Retiring && n.Leave == letGo || n.State == state.Retired:
		return n, true, nil
	case n.State != state.Retiring && !n.Member():
		return nil, false, fault.Refusedf("cannot retire node %q: it is %s", ref, n.State).
			Hint("a node that is not enrolled has nothing of the mesh; `mesh-controller revoke` turns it down")
	}
	if n.Hold != nil && n.Hold.Kind == state.Cloned {
		return nil, false, fault.Refusedf("cannot retire node %q: two machines use its key, and either could be told", ref).
			Hint("see `mesh-controller approve --help`; `mesh-controller revoke %s` ends both", n.Name)
	}
	n.State, n.Leave, n.Hold = state.Retiring, letGo, nil
	n.Decision = o.decision(n, "a person retired it")
	if err := endRejoins(tx, n.ID, n.Decision.At); err != nil {
		return nil, false, err
	}
	if err := module.Final(tx, n.Decision.At, n); err != nil {
		return nil, false, err
	}
	if err := tx.PutNode(n); err != nil {
		return nil, false, err
	}
	how := "is to remove what it owns and to leave"
	if letGo {
		how = "is to let go of what it owns and to leave"
	}
	return n, false, tx.AddEvent(&state.Event{At: n.Decision.At, Kind: "node.retiring", Node: n.ID,
		Sentence: fmt.Sprintf("node %q %s", n.Name, how)})
}

// Leave hears that a node has left, with what it could not take away. Its name, its
// key and what is known of it stay.
func (o *Office) Leave(id string, left []string) error {
	return o.Store.Batch(func(tx *state.Tx) error {
		n, err := tx.Node(id)
		if err != nil || n == nil || n.Gone() {
			return err
		}
		reason := "it left by itself"
		if n.State == state.Retiring {
			reason = n.Decision.Reason
		}
		n.State, n.Hold = state.Retired, nil
		n.Decision = o.decision(n, reason)
		if err := o.Grants.Revoke(tx, n.ID, n.Decision.At); err != nil {
			return err
		}
		if err := tx.PutNode(n); err != nil {
			return err
		}
		sentence := fmt.Sprintf("node %q has left the mesh", n.Name)
		if len(left) > 0 {
			sentence += fmt.Sprintf("; %s stayed on the machine", cli.Count(len(left), "thing", "things"))
		}
		return tx.AddEvent(&state.Event{At: n.Decision.At, Kind: "node.retired", Node: n.ID, Sentence: sentence})
	})
}
