package admission

import (
	"crypto/x509"
	"fmt"
	"slices"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/name"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// admit gives a pending node its name, its certificate and its first
// declaration, in which what it had stands unchanged. b is that, as far as it was
// read before.
func (o *Office) admit(tx *state.Tx, n *state.Node, want, reason string, b *module.Brought) error {
	now := o.Clock.Now().UTC()
	var err error
	if n.Name, err = freeName(tx, want, n.ID); err != nil {
		return err
	}
	if err := o.certify(n); err != nil {
		return err
	}
	n.State = state.Admitted
	n.Decision = o.decision(n, reason)
	n.Decision.ByPerson = reason == byPerson
	if _, err := o.Grants.Admit(tx, n.ID, now); err != nil {
		return err
	}
	// The name must be taken before a module is placed on it.
	if err := tx.PutNode(n); err != nil {
		return err
	}
	err = tx.AddEvent(&state.Event{At: now, Kind: "node.admitted", Node: n.ID,
		Sentence: fmt.Sprintf("node %q is admitted as %q: %s", n.ID, n.Name, reason)})
	if err != nil {
		return err
	}
	assign := func() (bool, error) { return module.Assign(tx, now, n) }
	if doc := tx.LocalDeclaration(n.ID); doc != nil {
		if b == nil || !b.Is(doc) {
			if b, err = module.Bring(doc); err != nil {
				return err
			}
		}
		taken, err := module.TakeOver(tx, now, n, b)
		if err != nil {
			return err
		}
		if err := tx.PutLocalDeclaration(n.ID, nil); err != nil {
			return err
		}
		assign = func() (bool, error) { return module.AssignBrought(tx, now, n, taken, b) }
	}
	if _, err := assign(); err != nil {
		if n.Conflict == "" {
			return err
		}
		// It is a node all the same; it keeps what it has until a person
		// resolves the conflict, which `nodes` shows.
		if err := tx.AddEvent(&state.Event{At: now, Kind: "node.conflict", Node: n.ID,
			Sentence: fmt.Sprintf("node %q gets no declaration: %s", n.Name, n.Conflict)}); err != nil {
			return err
		}
	}
	return tx.PutNode(n)
}

// certify makes the certificate of a node for the key it has.
func (o *Office) certify(n *state.Node) error {
	key, err := x509.ParsePKIXPublicKey(n.PublicKey)
	if err != nil {
		return fmt.Errorf("cannot read the key of node %q: %w", n.ID, err)
	}
	n.Certificate, err = o.Authority.Node(n.ID, key, o.Clock.Now().UTC())
	return err
}

// Ack takes the node's word that its credential is durable: the place of the
// token is used up. Saying it twice is the same as once.
func (o *Office) Ack(node, enrolment string) error {
	return o.Store.Batch(func(tx *state.Tx) error {
		n, err := tx.Node(node)
		if err != nil {
			return err
		}
		if n != nil && n.Enrolment == "" {
			return nil // an orphan that is taken back shows the credential it asks about
		}
		if n == nil || n.Enrolment != enrolment {
			return link.EnrolmentConflict.Errorf("enrolment %q is not that of this node", enrolment)
		}
		if n.State != state.Admitted {
			return nil
		}
		e, err := tx.Enrolment(enrolment)
		if err != nil {
			return err
		}
		e.Acked = o.Clock.Now().UTC()
		n.State = state.Enrolled
		if err := tx.PutEnrolment(e); err != nil {
			return err
		}
		if err := tx.PutNode(n); err != nil {
			return err
		}
		return tx.AddEvent(&state.Event{At: e.Acked, Kind: "node.enrolled", Node: n.ID, Token: e.Token,
			Sentence: fmt.Sprintf("node %q is enrolled", n.Name)})
	})
}

// byPerson is the reason of an approval.
const byPerson = "a person approved"

// Approve admits a pending node, under the name as if that is not empty, or as the
// node that it was. An orphan it takes back, and a node that is held it releases. One
// that was refused has stopped asking: it is pending from now on, and admitted when its
// machine comes again.
func (o *Office) Approve(ref, as string, tags []string, rejoin string) (n *state.Node, err error) {
	if rejoin != "" && (as != "" || len(tags) > 0) {
		return nil, fault.Usagef("cannot let node %q come back with a name or tags: it has its own", rejoin)
	}
	if as != "" && !name.Valid(as) {
		return nil, fault.Usagef("cannot name a node %q: a name is %s", as, name.Rule)
	}
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	b, err := o.brought(ref)
	if err != nil {
		return nil, err
	}
	err = o.Store.Update(func(tx *state.Tx) error {
		orphan, err := FindOrphan(tx, ref)
		if err != nil {
			return err
		}
		if n, err = FindNode(tx, ref); err != nil && orphan == nil {
			return err
		}
		if rejoin != "" && (n == nil || n.State != state.Pending) {
			return fault.Refusedf("cannot let node %q come back as another: only a machine that is pending can", ref).
				Hint("run `mesh-controller nodes` for those that are pending")
		}
		if n == nil {
			n, err = o.takeBack(tx, orphan, as, tags)
			return err
		}
		if orphan, err := tx.Orphan(n.ID); err != nil {
			return err
		} else if orphan != nil && n.State == state.Enrolled && as == "" {
			return o.takeKey(tx, n, orphan)
		}
		if n.Hold != nil && as == "" {
			return o.release(tx, n, tags)
		}
		if n.State != state.Pending && n.State != state.Refused {
			return fault.Refusedf("cannot approve node %q: it is %s and not pending", ref, n.State).
				Hint("run `mesh-controller nodes` for those that are pending")
		}
		if rejoin != "" {
			if n, err = o.joinAgain(tx, n, rejoin); err != nil {
				return err
			}
			return o.admit(tx, n, n.Name, "a person approved that it comes back", b)
		}
		if as == "" {
			as = name.Of(n.Profile.Hostname)
		} else if other, err := tx.NodeByName(as); err != nil {
			return err
		} else if other != nil {
			return fault.Refusedf("cannot name a node %q: another has that name", as).Hint("give another --name")
		}
		if n.State == state.Refused || n.Approval != nil {
			return o.approveRefused(tx, n, state.Approval{Name: as, Tags: tags})
		}
		n.Tags = merged(n.Tags, tags)
		return o.admit(tx, n, as, byPerson, b)
	})
	return n, err
}

// approveRefused keeps a person's word for a machine that is not asking.
func (o *Office) approveRefused(tx *state.Tx, n *state.Node, a state.Approval) error {
	n.State, n.Approval = state.Pending, &a
	n.Decision = o.decision(n, byPerson+"; it is admitted when it enrols again")
	n.Decision.ByPerson = true
	if err := tx.RemoveRefused(n.ID); err != nil {
		return err
	}
	if err := tx.PutNode(n); err != nil {
		return err
	}
	return tx.AddEvent(&state.Event{At: n.Decision.At, Kind: "node.approved", Node: n.ID,
		Sentence: fmt.Sprintf("machine %q, which was refused, is approved as node %q; it is admitted when it enrols again", n.Profile.Hostname, n.ID)})
}

// merged is tags, and those of more that are not among them.
func merged(tags, more []string) []string {
	out := slices.Clone(tags)
	for _, t := range more {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// brought reads what a pending node brought along, nil for nothing.
func (o *Office) brought(ref string) (*module.Brought, error) {
	var doc []byte
	err := o.Store.View(func(tx *state.Tx) error {
		if n, err := FindNode(tx, ref); err == nil && n != nil {
			doc = tx.LocalDeclaration(n.ID)
		}
		return nil // who is meant is found out in the transaction
	})
	if err != nil || doc == nil {
		return nil, err
	}
	return module.Bring(doc)
}

// Revoke takes a node's credentials away, in the caller's transaction, and says
// whether they were already. Its name, its key and what is known of it stay; the
// machine keeps what it has. One that was never admitted gives its token's place
// back.
func (o *Office) Revoke(tx *state.Tx, ref string) (n *state.Node, already bool, err error) {
	n, err = FindNode(tx, ref)
	if orphan, e := FindOrphan(tx, ref); e == nil && err != nil && orphan != nil {
		n, err = o.revokeOrphan(tx, orphan)
		return n, false, err
	}
	if err != nil {
		return nil, false, err
	}
	if n.State == state.Revoked {
		return n, true, nil
	}
	was := n.State
	switch was {
	case state.Refused:
		return nil, false, fault.Refusedf("cannot revoke node %q: it was refused and has no credentials", ref)
	case state.Pending:
		if err := giveBack(tx, n); err != nil {
			return nil, false, err
		}
	}
	n.State, n.Approval = state.Revoked, nil
	n.Decision = o.decision(n, "a person revoked")
	n.Decision.ByPerson = true
	if err := o.Grants.Revoke(tx, n.ID, n.Decision.At); err != nil {
		return nil, false, err
	}
	if err := endRejoins(tx, n.ID, n.Decision.At); err != nil {
		return nil, false, err
	}
	if err := tx.PutNode(n); err != nil {
		return nil, false, err
	}
	if err := tx.PutLocalDeclaration(n.ID, nil); err != nil {
		return nil, false, err
	}
	return n, false, tx.AddEvent(&state.Event{At: n.Decision.At, Kind: "node.revoked", Node: n.ID,
		Sentence: fmt.Sprintf("node %q is revoked; it was %s", ref, was)})
}
