package admission

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// orphaned is why a node that was an orphan is told nothing yet.
const orphaned = "it was enrolled after the backup that this control plane was restored from: what it has is not all known here"

// FindOrphan returns the orphan that ref means: its id, the beginning of its id (four
// digits or more), or what it calls itself. None is nil, and no fault.
func FindOrphan(tx *state.Tx, ref string) (*state.Orphan, error) {
	var found []*state.Orphan
	var err error
	if len(ref) >= 4 {
		if found, err = tx.OrphansWithPrefix(ref); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		all, err := tx.Orphans()
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(all, func(o *state.Orphan) bool { return o.Name != ref || ref == "" })
	}
	nodes, err := tx.NodesWithPrefix(ref)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, nil
	case len(found) == 1 && (found[0].ID == ref || found[0].Name == ref || len(nodes) == 0):
		return found[0], nil
	case len(found) == 1:
		return nil, nil // a node's id may be meant
	}
	return nil, fault.Refusedf("cannot find node %q: %d orphans could be meant", ref, len(found)).
		Hint("use the id that `mesh-controller nodes` prints")
}

// takeBack makes a node of an orphan again, under its id and key. It is held: what it
// was told before the loss is not known here, and its host would remove what a
// declaration made of what is known does not have.
func (o *Office) takeBack(tx *state.Tx, orphan *state.Orphan, as string, tags []string) (*state.Node, error) {
	n := &state.Node{ID: orphan.ID, Key: orphan.Key, PublicKey: orphan.PublicKey, State: state.Enrolled, Tags: tags, Hold: o.orphaned()}
	if as == "" {
		as = orphan.Name
	}
	var err error
	if n.Name, err = freeName(tx, as, n.ID); err != nil {
		return nil, err
	}
	if err := o.certify(n); err != nil {
		return nil, err
	}
	n.Decision = o.decision(n, "a person took it back")
	if err := tx.PutNode(n); err != nil {
		return nil, err
	}
	return n, o.adopted(tx, n, fmt.Sprintf("orphan %q is taken back as %q, and held back", n.ID, n.Name))
}

// takeKey gives a node that is known the key of its certificate of after the backup.
func (o *Office) takeKey(tx *state.Tx, n *state.Node, orphan *state.Orphan) error {
	n.End(n.Key)
	n.Key, n.PublicKey, n.Hold = orphan.Key, orphan.PublicKey, o.orphaned()
	if err := o.certify(n); err != nil {
		return err
	}
	n.Decision = o.decision(n, "a person took its new key")
	if err := tx.PutNode(n); err != nil {
		return err
	}
	return o.adopted(tx, n, fmt.Sprintf("node %q has the key it got after the backup, and is held back", n.Name))
}

func (o *Office) orphaned() *state.Hold {
	return &state.Hold{Kind: state.Ahead, Sentence: orphaned, At: o.Clock.Now().UTC()}
}

// adopted composes what the node shall be, and forgets the orphan.
func (o *Office) adopted(tx *state.Tx, n *state.Node, sentence string) error {
	if _, err := module.Assign(tx, o.Clock.Now().UTC(), n); err != nil && n.Conflict == "" {
		return err
	}
	if err := tx.PutNode(n); err != nil {
		return err
	}
	if err := tx.DeleteOrphan(n.ID); err != nil {
		return err
	}
	if _, err := o.Grants.Admit(tx, n.ID, n.Decision.At); err != nil {
		return err
	}
	return tx.AddEvent(&state.Event{At: n.Decision.At, Kind: "node.taken-back", Node: n.ID, Sentence: sentence})
}

// revokeOrphan makes a record of an orphan that says it is revoked.
func (o *Office) revokeOrphan(tx *state.Tx, orphan *state.Orphan) (*state.Node, error) {
	n := &state.Node{ID: orphan.ID, Key: orphan.Key, PublicKey: orphan.PublicKey, State: state.Revoked}
	var err error
	if n.Name, err = freeName(tx, orphan.Name, n.ID); err != nil {
		return nil, err
	}
	n.Decision = o.decision(n, "a person revoked")
	if err := tx.PutNode(n); err != nil {
		return nil, err
	}
	if err := tx.DeleteOrphan(n.ID); err != nil {
		return nil, err
	}
	return n, tx.AddEvent(&state.Event{At: n.Decision.At, Kind: "node.revoked", Node: n.ID,
		Sentence: fmt.Sprintf("node %q is revoked; it was an orphan", n.Name)})
}

// TakeProfile takes what a node says it can run, where nothing is known of that: of
// one that was an orphan, while it is held and a person has not looked yet.
func (o *Office) TakeProfile(tx *state.Tx, n *state.Node, p *profile.Profile) error {
	if p == nil || n.Hold == nil || n.Profile.Architecture != "" || n.Profile.Hostname != "" {
		return nil
	}
	if b, err := json.Marshal(p); err != nil || len(b) > maxProfile {
		return nil // a claim of that size is none
	}
	n.Profile = *p
	if _, err := module.Assign(tx, o.Clock.Now().UTC(), n); err != nil && n.Conflict == "" {
		return err
	}
	return tx.PutNode(n)
}
