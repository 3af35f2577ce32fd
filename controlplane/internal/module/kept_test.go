package module_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
)

// sourced declares a file with the content.
func sourced(path, text string) []byte {
	return fmt.Appendf(nil, `{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":%q,"source":%q}]}`, path, digest.FromString(text))
}

func there(digest.Digest) bool { return true }

func TestWhatANodeMayStillFetchIsKept(t *testing.T) {
	one, two, gone := node("one"), node("two"), node("gone")
	m := newMesh(t, one, two, gone)
	blobs, err := content.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"first", "second", "of gone", "pushed", "litter"} {
		if _, _, err := blobs.Add(t.Context(), strings.NewReader(c), 100); err != nil {
			t.Fatal(err)
		}
	}
	declare := func(name, path, text string, on ...string) {
		t.Helper()
		err := m.Update(func(tx *state.Tx) error {
			_, err := module.Declare(tx, now, module.Wish{Name: name, Document: sourced(path, text), Placement: on}, there)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	stays := func(want ...string) {
		t.Helper()
		if _, err := blobs.Collect(t.Context(), module.Keeper(m.Store, blobs)); err != nil {
			t.Fatal(err)
		}
		for _, c := range []string{"first", "second", "of gone", "pushed", "litter"} {
			is, should := blobs.Has(digest.FromString(c), -1), strings.Contains(strings.Join(want, ","), c)
			if is != should {
				t.Errorf("%q is there: %v, want %v", c, is, should)
			}
		}
	}
	declare("m", "/m", "first", "node=one", "node=two")
	declare("g", "/g", "of gone", "node=gone")
	err = m.Update(func(tx *state.Tx) error {
		// two is in conflict from now on, and keeps the declaration it had.
		n, err := tx.Node("id-two")
		if err != nil {
			return err
		}
		n.Tags = []string{"clash"}
		if err := tx.PutModule(&state.Module{Name: "z", Version: 1, Placement: []string{"tag=clash"}, Changed: now}, sourced("/m", "first")); err != nil {
			return err
		}
		if _, err := module.Assign(tx, now, n); err == nil || n.Conflict == "" {
			t.Errorf("no conflict: %v", err)
		}
		if err := tx.PutNode(n); err != nil {
			return err
		}
		if err := tx.DeleteModule("z"); err != nil {
			return err
		}
		return tx.PutPushed(&state.Pushed{Name: "p", Architecture: "x86_64", Bundle: digest.FromString("index").String(), Sources: []string{digest.FromString("pushed").String()}}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	stays("first", "of gone", "pushed")
	if _, _, err := blobs.Add(t.Context(), strings.NewReader("second"), 100); err != nil {
		t.Fatal(err)
	}
	// The module has other content now; what a node was told, it may still fetch.
	err = m.Update(func(tx *state.Tx) error {
		mod, err := tx.Module("m")
		if err != nil {
			return err
		}
		return tx.PutModule(mod, sourced("/m", "second"))
	})
	if err != nil {
		t.Fatal(err)
	}
	stays("first", "second", "of gone", "pushed")

	err = m.Update(func(tx *state.Tx) error {
		n, err := tx.Node("id-gone")
		if err != nil {
			return err
		}
		n.State = state.Revoked
		if err := tx.PutNode(n); err != nil {
			return err
		}
		for _, name := range []string{"g", "m", "p"} {
			if _, err := module.Undeclare(tx, now, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	stays()
}

func TestADocumentThatCannotBeReadKeepsEverything(t *testing.T) {
	m := newMesh(t)
	blobs, err := content.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := blobs.Add(t.Context(), strings.NewReader("litter"), 100); err != nil {
		t.Fatal(err)
	}
	err = m.Update(func(tx *state.Tx) error {
		return tx.PutModule(&state.Module{Name: "m", Version: 1, Changed: now}, []byte(`{"schema":`))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blobs.Collect(t.Context(), module.Keeper(m.Store, blobs)); err == nil || !blobs.Has(digest.FromString("litter"), -1) {
		t.Errorf("%v", err)
	}
}
