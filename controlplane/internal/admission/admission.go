package admission

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/ca"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/name"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/provider"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// An Office applies the rules of this package to one mesh.
type Office struct {
	Store     *state.Store
	Authority *ca.Authority
	Clock     clock.Clock
	// Addresses returns where nodes find the control plane.
	Addresses func() ([]string, error)
	// Linked says whether a node has a link open; nil says that none has.
	Linked func(node string) bool
	// Policy may be stricter than a token.
	Policy Policy
	// Grants are what nodes hold beside their credentials.
	Grants *provider.Book

	// deciding is told, in tests, right before a node is decided on.
	deciding func(*state.Tx, *state.Node)
}

// Found returns the mesh of a state, and makes it at the first start.
func Found(s *state.Store, c clock.Clock) (*state.Mesh, *ca.Authority, error) {
	var m *state.Mesh
	err := s.View(func(tx *state.Tx) (err error) { m, err = tx.Mesh(); return err })
	if err != nil {
		return nil, nil, err
	}
	if m != nil {
		a, err := ca.Load(m.ID, m.RootKey, m.Root, m.Before...)
		return m, a, err
	}
	err = s.Update(func(tx *state.Tx) (err error) {
		m = &state.Mesh{ID: newID(), Epoch: 1, Created: c.Now().UTC()}
		if m.RootKey, m.Root, err = ca.Create(m.ID, c.Now()); err != nil {
			return err
		}
		if err := tx.AddEvent(&state.Event{At: m.Created, Kind: "mesh.founded",
			Sentence: fmt.Sprintf("mesh %q is founded", m.ID)}); err != nil {
			return err
		}
		return tx.PutMesh(m)
	})
	if err != nil {
		return nil, nil, err
	}
	a, err := ca.Load(m.ID, m.RootKey, m.Root, m.Before...)
	return m, a, err
}

// newID makes the id of a mesh or a node: 32 hex digits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (Go 1.24)
	return hex.EncodeToString(b[:])
}

// IsID says whether s is the id of an enrolment, a report or a node.
func IsID(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// freeName returns want, or want with the first number behind it that makes it
// a name no node has. A name stays with the key it was given to, so that of a
// revoked node is not free.
func freeName(tx *state.Tx, want, id string) (string, error) {
	if want == "" {
		want = "node-" + id[:8]
	}
	for i := 1; ; i++ {
		s := name.Numbered(want, i)
		n, err := tx.NodeByName(s)
		if err != nil {
			return "", err
		}
		if n == nil || n.ID == id {
			return s, nil
		}
	}
}

// FindNode returns the node that ref means: its name, its id, the beginning of
// its id (four digits or more), or the hostname of one that is pending, or else of
// one that was refused. More than one, or none, is a fault.
func FindNode(tx *state.Tx, ref string) (*state.Node, error) {
	n, err := tx.NodeByName(ref)
	if err != nil || n != nil {
		return n, err
	}
	var found []*state.Node
	if len(ref) >= 4 {
		if found, err = tx.NodesWithPrefix(ref); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		all, err := tx.Nodes()
		if err != nil {
			return nil, err
		}
		for _, in := range []state.NodeState{state.Pending, state.Refused} {
			for _, n := range all {
				if n.State == in && n.Profile.Hostname == ref && ref != "" {
					found = append(found, n)
				}
			}
			if len(found) > 0 {
				break
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, fault.Refusedf("cannot find node %q: there is none", ref).
			Hint("run `mesh-controller nodes` for names and ids")
	case 1:
		return found[0], nil
	}
	return nil, fault.Refusedf("cannot find node %q: %d nodes could be meant", ref, len(found)).
		Hint("use the id that `mesh-controller nodes` prints")
}
