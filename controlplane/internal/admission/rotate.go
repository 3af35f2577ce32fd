package admission

import (
	"fmt"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/ca"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// RotateRoot makes a new mesh root, signed by the one that there is, and returns its
// pin. It counts when the state is opened anew. Nodes come to know it at their next contact, however long that
// is away, and tokens that were made before go on being good.
func (o *Office) RotateRoot() (pin string, err error) {
	err = o.Store.Update(func(tx *state.Tx) error {
		m, err := tx.Mesh()
		if err != nil {
			return err
		}
		if len(m.Before) == ca.MaxBefore {
			return fault.Refusedf("cannot rotate the mesh root: it was %d times, and a node that knows the first one would be shown more than it reads", ca.MaxBefore)
		}
		now := o.Clock.Now().UTC()
		key, root, before, err := ca.Rotate(m.ID, m.RootKey, m.Root, now)
		if err != nil {
			return err
		}
		m.RootKey, m.Root, m.Before = key, root, append([]ca.Before{before}, m.Before...)
		a, err := ca.Load(m.ID, m.RootKey, m.Root, m.Before...)
		if err != nil {
			return err
		}
		pin = a.Pin()
		if err := tx.PutMesh(m); err != nil {
			return err
		}
		return tx.AddEvent(&state.Event{At: now, Kind: "mesh.root", Sentence: fmt.Sprintf("mesh %q has a new root, signed by the one before", m.ID)})
	})
	return pin, err
}
