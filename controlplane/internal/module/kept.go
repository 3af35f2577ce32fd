package module

import (
	"context"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// Keeper says what of the content store is needed: what modules name, what nodes
// are to have and may still fetch (which is not what their modules say, after a
// conflict), the bundles that were pushed, and what new machines are served. All that is marked came by a
// push, so the marks of what is not recorded are over.
func Keeper(store *state.Store, blobs *content.Store) content.Keeper {
	return func(context.Context) (k content.Kept, err error) {
		err = store.View(func(tx *state.Tx) (err error) {
			k, err = kept(tx)
			return err
		})
		if err != nil {
			return k, err
		}
		marks, err := blobs.Marks()
		for _, m := range marks {
			k.Unmark = append(k.Unmark, m.Digest) // but for those in Trees
		}
		return k, err
	}
}

func kept(tx *state.Tx) (content.Kept, error) {
	var k content.Kept
	s, err := load(tx, time.Time{})
	if err != nil {
		return k, err
	}
	for _, m := range s.modules {
		d, err := s.document(m.key)
		if err != nil {
			return k, err
		}
		keep(&k, d)
	}
	nodes, err := tx.Nodes()
	if err != nil {
		return k, err
	}
	seen := map[string]bool{}
	for _, n := range nodes {
		if n.Gone() || n.Wanted.Generation == 0 || seen[n.Wanted.Content] {
			continue
		}
		seen[n.Wanted.Content] = true
		d, err := declaration.Parse(tx.Declaration(n.ID))
		if err != nil {
			return k, fmt.Errorf("cannot read the declaration of node %q: %w", n.Name, err)
		}
		keep(&k, d)
	}
	pushed, err := tx.AllPushed()
	for _, p := range pushed {
		k.Trees = append(k.Trees, digest.Digest(p.Bundle))
		for _, s := range p.Sources {
			// Content that came compressed is not under the bundle's tree.
			k.Blobs = append(k.Blobs, digest.Digest(s))
		}
	}
	if err != nil {
		return k, err
	}
	published, err := tx.AllPublished()
	for _, p := range published {
		for _, s := range p.Sources {
			k.Blobs = append(k.Blobs, digest.Digest(s))
		}
	}
	return k, err
}

// keep adds the content a declaration names: an image with all that is under its
// manifest.
func keep(k *content.Kept, d *declaration.Declaration) {
	for i := range d.Resources {
		r := &d.Resources[i]
		if r.Container != nil {
			k.Trees = append(k.Trees, r.Sources()...)
			continue
		}
		k.Blobs = append(k.Blobs, r.Sources()...)
	}
}
