package restore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/backup"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/ca"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// finish makes of what was read what is to be taken up.
func (s *Staged) finish(ctx context.Context, o Options, blobs *content.Store) error {
	dir := staging(o.Layout)
	s.Order = &Order{Mesh: s.Mesh, Backup: s.Made, At: o.Now, Former: formerName + o.Now.UTC().Format("20060102T150405Z")}
	for i := 2; ; i++ { // two in one second
		if _, err := os.Lstat(filepath.Join(o.Layout.ControllerState(), s.Order.Former)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		s.Order.Former = fmt.Sprintf("%s%s-%d", formerName, o.Now.UTC().Format("20060102T150405Z"), i)
	}
	// A state that is in order and not the backup's may be further.
	s.Order.Epoch = s.Epoch + 1
	if o.There.Mesh == s.Mesh {
		s.Order.Epoch = max(s.Epoch, o.There.Epoch) + 1
	}
	store, err := state.Open(filepath.Join(dir, backup.State))
	if err != nil {
		return err
	}
	err = store.Update(func(tx *state.Tx) error { return s.amend(tx, o) })
	if err == nil {
		err = store.View(func(tx *state.Tx) error { return s.complete(ctx, tx, o, blobs) })
	}
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	// Releases that were taken here are remembered also where the backup has none.
	if _, err := os.Lstat(filepath.Join(dir, backup.Trust)); errors.Is(err, fs.ErrNotExist) {
		if b, err := os.ReadFile(trustHere(o.Layout)); err == nil {
			if err := durable.WriteFile(filepath.Join(dir, backup.Trust), b, 0o600); err != nil {
				return err
			}
		}
	}
	return s.Order.write(dir)
}

// amend makes the state one of a new epoch, after a look whether it is the one that
// the backup said.
func (s *Staged) amend(tx *state.Tx, o Options) error {
	mesh, err := tx.Mesh()
	if err != nil {
		return err
	}
	known, err := state.ReadFounded(filepath.Join(staging(o.Layout), backup.Founded))
	if err != nil {
		return err
	}
	if mesh == nil || mesh.ID != s.Mesh || mesh.Epoch != s.Epoch || known == nil || *known != (state.Founded{Mesh: s.Mesh, Pin: s.Pin}) {
		return fault.Refusedf("what is in it is not what its manifest says: another mesh, or another epoch").
			Hint("take another copy of it, or an earlier backup")
	}
	a, err := ca.Load(mesh.ID, mesh.RootKey, mesh.Root)
	if err != nil {
		return err
	}
	if a.Pin() != s.Pin {
		return fault.Refusedf("what is in it is not what its manifest says: another mesh root").
			Hint("take another copy of it, or an earlier backup")
	}
	if len(o.Addresses) > 0 {
		for _, a := range tx.Addresses() {
			if _, err := tx.RemoveAddress(a); err != nil {
				return err
			}
		}
		for _, a := range o.Addresses {
			if _, err := tx.AddAddress(a); err != nil {
				return err
			}
		}
	}
	mesh.Epoch = s.Order.Epoch
	mesh.Restored = &state.Restored{Backup: s.Made, Epoch: s.Epoch, At: o.Now}
	if err := tx.PutMesh(mesh); err != nil {
		return err
	}
	return tx.AddEvent(&state.Event{At: o.Now, Kind: "mesh.restored", Sentence: fmt.Sprintf(
		"the control plane is restored from a backup of %s, epoch %d; it is epoch %d now", day(s.Made), s.Epoch, mesh.Epoch)})
}

// complete adds the content that lies here already, and finds out what is lacking.
func (s *Staged) complete(ctx context.Context, tx *state.Tx, o Options, blobs *content.Store) error {
	kept, err := module.Needed(tx)
	if err != nil {
		return err
	}
	// By digest, one after the other: what is under a tree is known only when the
	// tree itself is here.
	for {
		reached, err := blobs.Reached(ctx, kept)
		if err != nil {
			return err
		}
		added := false
		for _, d := range reached {
			if !blobs.Has(d, -1) && adopt(filepath.Join(o.Layout.ControllerContent()), blobs.Dir(), d) {
				added = true
			}
		}
		if !added {
			break
		}
	}
	if err := durable.SyncDir(filepath.Join(blobs.Dir(), "blobs/sha256")); err != nil {
		return err
	}
	s.Lacking, err = module.Lacking(tx, func(d digest.Digest) bool { return blobs.Has(d, -1) })
	slices.Sort(s.Lacking)
	return err
}

// adopt takes a blob over from the content that is here. Blobs never change, so both
// stores may have the same file.
func adopt(from, to string, d digest.Digest) bool {
	const blobs = "blobs/sha256"
	return os.Link(filepath.Join(from, blobs, d.Encoded()), filepath.Join(to, blobs, d.Encoded())) == nil
}
