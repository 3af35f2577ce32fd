package service

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/ca"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func foundedPath(l layout.Layout) string { return filepath.Join(l.ControllerState(), "mesh.json") }

// open opens the state, and makes the mesh when there never was one.
func open(l layout.Layout, c clock.Clock) (*state.Store, *state.Mesh, *ca.Authority, error) {
	path := l.ControllerStore()
	known, err := state.ReadFounded(foundedPath(l))
	if err != nil {
		return nil, nil, nil, err
	}
	if known != nil {
		// Before it is opened: bbolt makes a file where there is none, and begins
		// an empty one.
		fi, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, nil, lost(l, known, "is not there")
		case err != nil:
			return nil, nil, nil, fault.Failedf("cannot open state: %w", err)
		case fi.Size() == 0:
			return nil, nil, nil, lost(l, known, "is empty")
		}
	}
	store, err := state.Open(path)
	if err != nil {
		return nil, nil, nil, err
	}
	mesh, authority, err := found(store, l, known, c)
	if err != nil {
		store.Close()
		return nil, nil, nil, err
	}
	return store, mesh, authority, nil
}

// found returns the mesh of the state if it is the known one, and writes down
// which it is where nothing is known. The state is first: one that was made and
// not written down has no nodes yet, and is written down at the next start.
func found(store *state.Store, l layout.Layout, known *state.Founded, c clock.Clock) (*state.Mesh, *ca.Authority, error) {
	if known != nil {
		err := store.View(func(tx *state.Tx) error {
			m, err := tx.Mesh()
			if err == nil && m == nil {
				err = lost(l, known, "has no mesh in it")
			}
			return err
		})
		if err != nil {
			return nil, nil, err
		}
	}
	mesh, authority, err := admission.Found(store, c)
	if err != nil {
		return nil, nil, err
	}
	is := state.Founded{Mesh: mesh.ID, Pin: authority.Pin()}
	switch {
	case known != nil && *known == is:
		return mesh, authority, nil
	case known != nil && known.Mesh == is.Mesh && authority.Knows(known.Pin): // it rotated
	case known != nil && known.Mesh != "":
		return nil, nil, lost(l, known, "is that of mesh \""+is.Mesh+"\"")
	}
	b, err := json.Marshal(is)
	if err == nil {
		err = durable.WriteFile(foundedPath(l), append(b, '\n'), 0o600)
	}
	if err != nil {
		return nil, nil, fault.Failedf("cannot write down which mesh this is: %w", err)
	}
	return mesh, authority, nil
}

func lost(l layout.Layout, known *state.Founded, what string) error {
	mesh := "a mesh"
	if known.Mesh != "" {
		mesh = "mesh \"" + known.Mesh + "\""
	}
	return fault.Refusedf("cannot serve %s: its state %q %s", mesh, l.ControllerStore(), what).
		Hint("bring a backup back with `mesh-controller restore FILE`; or remove %q to found a new mesh, to which no node of the old one comes", foundedPath(l))
}
