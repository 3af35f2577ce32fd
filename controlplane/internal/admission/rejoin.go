package admission

import (
	"fmt"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
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
	n.End(n.Key)
	n.Key, n.PublicKey, n.Enrolment, n.Profile = fresh.Key, fresh.PublicKey, fresh.Enrolment, fresh.Profile
	n.State, n.Hold, n.Leave = state.Pending, nil, false
	// It has nothing in force, whatever it said before.
	n.Applied = state.Applied{}
	return n, tx.DropLine(n.ID)
}

// mayComeBack says whether a machine that began to enrol and was not admitted becomes
// the node that it was by a token: as long as no rule is stricter than that. What a
// person said of it with the same token stands.
func (o *Office) mayComeBack(t *state.Token, e *state.Enrolment, n *state.Node, req link.EnrolRequest) bool {
	if t.Rejoin == "" || n.ID == t.Rejoin || n.State != state.Pending && n.State != state.Refused {
		return false
	}
	if e.Token == t.ID && n.State == state.Refused && n.Decision.ByPerson {
		return false
	}
	verdict, _ := o.Policy.judge(t, &req.Profile)
	return verdict == Admit
}

// comesBack makes such a machine the node that it was.
func (o *Office) comesBack(tx *state.Tx, t *state.Token, e *state.Enrolment, n *state.Node, req link.EnrolRequest, b *module.Brought) (*state.Node, error) {
	if err := giveBack(tx, n); err != nil {
		return nil, err
	}
	t, err := tx.Token(t.ID) // which may be the one that it gave back
	if err != nil {
		return nil, err
	}
	if err := judge(t, o.Clock.Now()); err != nil {
		return nil, err
	}
	t.Taken++
	e.Token, e.Freed = t.ID, false
	n.Profile = req.Profile
	for _, err := range []error{
		tx.PutToken(t), tx.PutEnrolment(e), tx.PutInventory(n.ID, &req.Inventory), tx.PutLocalDeclaration(n.ID, localDeclaration(req)),
	} {
		if err != nil {
			return nil, err
		}
	}
	back, err := o.joinAgain(tx, n, t.Rejoin)
	if err != nil {
		return nil, err
	}
	return back, o.admit(tx, back, back.Name, fmt.Sprintf("token %q lets it come back", t.ID), b)
}

// endRejoins revokes the tokens by which a machine could become a node that is to leave
// the mesh: who has one of them would bring it back.
func endRejoins(tx *state.Tx, node string, now time.Time) error {
	ts, err := tx.Tokens()
	if err != nil {
		return err
	}
	for _, t := range ts {
		if t.Rejoin != node || !t.Revoked.IsZero() {
			continue
		}
		t.Revoked = now
		if err := tx.PutToken(t); err != nil {
			return err
		}
	}
	return nil
}

// joinAgain makes a machine that was not admitted the node that ref means.
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
	if err := tx.RemoveRefused(pending.ID); err != nil {
		return nil, err
	}
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
