package admission

import (
	"fmt"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A machine that comes back without its identity, reinstalled or with a new disk, may
// be the node it was: it gets that one's id, name, tags, modules and history, under a
// key of its own, and what that one was known to own. The old key ends.

// rejoinable returns the id of the node that a machine may become again, "" for "".
func rejoinable(tx *state.Tx, ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	n, err := FindNode(tx, ref)
	if err != nil {
		return "", err
	}
	if n.Name == "" {
		return "", fault.Refusedf("cannot let a machine come back as node %q: that was never admitted", ref)
	}
	return n.ID, nil
}

// rejoined returns the node of that id with what is new of the machine: its key, its
// enrolment and its profile.
func rejoined(tx *state.Tx, id string, fresh *state.Node) (*state.Node, error) {
	n, err := tx.Node(id)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, fmt.Errorf("internal error: there is no node %q to come back as", id)
	}
	const kept = 8
	n.Ended = append([]string{n.Key}, n.Ended...)
	n.Ended = n.Ended[:min(len(n.Ended), kept)]
	n.Key, n.PublicKey, n.Enrolment, n.Profile = fresh.Key, fresh.PublicKey, fresh.Enrolment, fresh.Profile
	n.State, n.Hold, n.Leave = state.Pending, nil, false
	// It has nothing in force, whatever it said before.
	n.Applied = state.Applied{}
	return n, tx.DropLine(n.ID)
}

// joinAgain makes a pending machine the node that ref means.
func (o *Office) joinAgain(tx *state.Tx, pending *state.Node, ref string) (*state.Node, error) {
	id, err := rejoinable(tx, ref)
	if err != nil {
		return nil, err
	}
	inv, err := tx.Inventory(pending.ID)
	if err != nil {
		return nil, err
	}
	local := tx.LocalDeclaration(pending.ID)
	e, err := tx.Enrolment(pending.Enrolment)
	if err != nil {
		return nil, err
	}
	if err := tx.DropPending(pending); err != nil {
		return nil, err
	}
	n, err := rejoined(tx, id, pending)
	if err != nil {
		return nil, err
	}
	e.Node = n.ID
	for _, err := range []error{tx.PutEnrolment(e), tx.PutNode(n), tx.TakeInventory(n.ID, inv), tx.PutLocalDeclaration(n.ID, local)} {
		if err != nil {
			return nil, err
		}
	}
	return n, nil
}
