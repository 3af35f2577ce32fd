package admission

import (
	"fmt"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// refuse writes down that a machine is turned down, and gives its token's place
// back. What was decided on is kept, but for the declaration it brought: a machine
// that comes again brings it again, as it is then.
func (o *Office) refuse(tx *state.Tx, n *state.Node, reason string, byPerson bool) error {
	n.State, n.Approval = state.Refused, nil
	n.Decision = o.decision(n, reason)
	n.Decision.ByPerson = byPerson
	if err := tx.PutNode(n); err != nil {
		return err
	}
	if err := tx.PutLocalDeclaration(n.ID, nil); err != nil {
		return err
	}
	if err := giveBack(tx, n); err != nil {
		return err
	}
	return tx.AddRefused(n.ID)
}

// giveBack frees the place that a machine which is no node has of its token.
func giveBack(tx *state.Tx, n *state.Node) error {
	e, err := tx.Enrolment(n.Enrolment)
	if err != nil || e == nil || e.Freed {
		return err
	}
	t, err := tx.Token(e.Token)
	if err != nil {
		return err
	}
	if t != nil {
		t.Taken--
		if err := tx.PutToken(t); err != nil {
			return err
		}
	}
	e.Freed = true
	return tx.PutEnrolment(e)
}

// refusedAgain answers a machine that was refused and asks once more. With the
// same token a person's word stands, and a rule's as long as it is a rule; else it
// is decided anew, on what the machine says now. One that a person approved
// meanwhile is admitted, and needs no place.
func (o *Office) refusedAgain(tx *state.Tx, t *state.Token, e *state.Enrolment, n *state.Node, req link.EnrolRequest, b *module.Brought) (*state.Node, error) {
	same := e.Token == t.ID
	approved := n.State == state.Pending && n.Approval != nil
	verdict, _ := o.Policy.judge(t, &req.Profile)
	if !approved && same && (n.Decision.ByPerson || verdict == Refuse) {
		return n, nil
	}
	if !approved || !same {
		if err := judge(t, o.Clock.Now()); err != nil {
			return nil, err
		}
		if err := inScope(t, req.Profile.Hostname); err != nil {
			return nil, err
		}
	}
	e.Token = t.ID
	if !approved {
		t.Taken++
		e.Freed, e.Hostname, e.At = false, req.Profile.Hostname, o.Clock.Now().UTC()
		n.State, n.Profile, n.Tags = state.Pending, req.Profile, t.Tags
	}
	for _, err := range []error{
		tx.RemoveRefused(n.ID), tx.PutToken(t), tx.PutEnrolment(e), tx.PutNode(n), tx.PutInventory(n.ID, &req.Inventory),
		tx.PutLocalDeclaration(n.ID, localDeclaration(req)),
	} {
		if err != nil {
			return nil, err
		}
	}
	if approved {
		a := n.Approval
		n.Approval = nil
		n.Tags = merged(n.Tags, a.Tags)
		return n, o.admit(tx, n, a.Name, byPerson, b)
	}
	return n, o.decide(tx, n, t, b)
}

// Refuse turns down a machine that is pending, and says whether it was already. It
// is told at its next poll.
func (o *Office) Refuse(ref, reason string) (n *state.Node, already bool, err error) {
	if err := checkReason(reason); err != nil {
		return nil, false, fault.Usagef("cannot refuse node %q: %w", ref, err)
	}
	err = o.Store.Update(func(tx *state.Tx) error {
		if n, err = FindNode(tx, ref); err != nil {
			return err
		}
		switch n.State {
		case state.Refused:
			already = true
			return nil
		case state.Pending:
		default:
			return fault.Refusedf("cannot refuse node %q: it is %s and not pending", ref, n.State).
				Hint("run `mesh-controller revoke NODE` to take a node's credentials away")
		}
		why := "a person refused"
		if reason != "" {
			why += ": " + reason
		}
		if err := o.refuse(tx, n, why, true); err != nil {
			return err
		}
		return tx.AddEvent(&state.Event{At: n.Decision.At, Kind: "node.refused", Node: n.ID,
			Sentence: fmt.Sprintf("machine %q is refused as node %q: %s", n.Profile.Hostname, n.ID, why)})
	})
	return n, already, err
}

// refusal is what a refused machine is told.
func (o *Office) refusal(n *state.Node) link.Answer {
	a := link.Refused.Answer(o.Clock.Now().UTC(), fmt.Sprintf("this machine is refused: %s", n.Decision.Reason))
	a.Remedy = fmt.Sprintf("if it shall be a node, run `mesh-controller approve %s` on the control plane, and enrol again", n.ID[:8])
	return a
}
