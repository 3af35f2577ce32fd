package restore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/backup"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// There is what a restore would take the place of.
type There struct {
	// Mesh is "" where there never was a control plane.
	Mesh  string
	Epoch uint64
	Nodes []backup.Node
	// Unusable is why the state cannot be used; the mesh is known all the same.
	Unusable error
}

// Look finds out what is there while no control plane runs.
func Look(l layout.Layout) (t There, err error) {
	known, err := state.ReadFounded(foundedPath(l))
	if err != nil {
		return t, err
	}
	if known != nil {
		t.Mesh = known.Mesh
		if t.Mesh == "" {
			t.Mesh = unknownMesh
		}
	}
	fi, err := os.Stat(l.ControllerStore())
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && fi.Size() == 0:
		if known != nil {
			t.Unusable = fmt.Errorf("%q is not there, or is empty", l.ControllerStore())
		}
		return t, nil
	case err != nil:
		return t, fault.Failedf("cannot look at the state: %w", err)
	}
	err = state.Look(l.ControllerStore(), func(tx *state.Tx) error {
		m, err := tx.Mesh()
		if err != nil || m == nil {
			return err
		}
		nodes, err := tx.Nodes()
		for _, n := range nodes {
			t.Nodes = append(t.Nodes, backup.Node{ID: n.ID, Name: n.Name, State: string(n.State)})
		}
		t.Mesh, t.Epoch = m.ID, m.Epoch
		return err
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return t, fault.Failedf("cannot look at the state: a control plane has it, and does not answer").
			Hint("see `mesh-host status`, and run it again")
	case errors.Is(err, fs.ErrPermission):
		return t, fault.Failedf("cannot look at the state: %w", err)
	case err != nil:
		t.Unusable = err
		if t.Mesh == "" {
			t.Mesh = unknownMesh
		}
	}
	return t, nil
}

// unknownMesh is a mesh of which only is known that there was one.
const unknownMesh = "?"

// permits refuses a backup that would cost what is there, unless that is meant.
func (t There) permits(m *backup.Manifest, replace bool) error {
	same := t.Mesh == m.Mesh
	if replace || t.Mesh == "" || !same && t.Unusable == nil && len(t.Nodes) == 0 || t.Unusable != nil && (same || t.Mesh == unknownMesh) {
		return nil
	}
	switch {
	case t.Unusable != nil:
		return fault.Refusedf("the backup is of mesh %q, and this machine is the control plane of mesh %q, whose state cannot be used", m.Mesh, t.Mesh).
			Hint("restore a backup of that mesh; or say --replace: what is there is set aside")
	case !same:
		return fault.Refusedf("the backup is of mesh %q, and this machine is the control plane of mesh %q, which has %s: %s", m.Mesh, t.Mesh,
			cli.Count(len(t.Nodes), "node", "nodes"), names(t.Nodes)).
			Hint("restore it on another machine; or say --replace: those nodes would have no control plane")
	}
	sentence := fmt.Sprintf("this machine is the control plane of mesh %q already, and in order", m.Mesh)
	if lost := t.Lost(m); len(lost) > 0 {
		sentence += "; the backup does not know " + names(lost)
	}
	return fault.Refusedf("%s", sentence).
		Hint("say --replace to go back to the backup of %s: what is there is set aside, and nodes that it does not know come as orphans", day(m.Made))
}

// Lost returns the nodes that are there and not in the backup.
func (t There) Lost(m *backup.Manifest) []backup.Node {
	in := map[string]bool{}
	for _, n := range m.Nodes {
		in[n.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(t.Nodes), func(n backup.Node) bool { return in[n.ID] })
}

// Revived returns the nodes that are revoked there and not in the backup.
func (t There) Revived(m *backup.Manifest) (out []backup.Node) {
	revoked := map[string]bool{}
	for _, n := range t.Nodes {
		revoked[n.ID] = n.State == string(state.Revoked)
	}
	for _, n := range m.Nodes {
		if revoked[n.ID] && n.State != string(state.Revoked) {
			out = append(out, n)
		}
	}
	return out
}

func names(ns []backup.Node) string {
	const told = 10
	var out []string
	for i, n := range ns {
		if i == told {
			out = append(out, fmt.Sprintf("and %d more", len(ns)-told))
			break
		}
		name := n.Name
		if name == "" {
			name = n.ID[:min(len(n.ID), 8)]
		}
		out = append(out, fmt.Sprintf("%q", name))
	}
	return strings.Join(out, ", ")
}
