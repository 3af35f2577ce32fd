package module

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
)

func parsed(t *testing.T, doc string) *declaration.Declaration {
	t.Helper()
	d, err := declaration.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const motd = `{"schema":1,"name":"x","resources":[{"id":"m","type":"file","path":"/etc/motd","content":"a <b> & \"c\"\n"}]}`

// A stamped document is the one that Marshal would write of the whole.
func TestTheStampIsTheNormalForm(t *testing.T) {
	for _, parts := range [][]part{nil, {{module: "motd", document: parsed(t, motd)}}} {
		c, err := compose(parts)
		if err != nil {
			t.Fatal(err)
		}
		for generation, name := range map[uint64]string{1: "a", 12345678901: strings.Repeat("web-1", 12)} {
			doc, err := c.stamp(name, generation)
			if err != nil {
				t.Fatal(err)
			}
			d := parsed(t, string(doc))
			want, err := d.Marshal()
			if err != nil || string(doc) != string(want) {
				t.Errorf("%s\nis not\n%s, %v", doc, want, err)
			}
			if d.Name != name || d.Generation != generation || len(d.Resources) != len(parts) {
				t.Errorf("%+v", d)
			}
		}
	}
}

func TestAStampThatMakesItTooLongIsRefused(t *testing.T) {
	c := &composition{tail: make([]byte, declaration.MaxSize-len(head("n", 1)))}
	if _, err := c.stamp("n", 1); err != nil {
		t.Errorf("just as long as it may be: %v", err)
	}
	if _, err := c.stamp("nn", 1); err == nil {
		t.Error("one byte more is let through")
	}
}

func TestWhatNodesHaveInCommonIsComposedOnce(t *testing.T) {
	store, err := state.Open(filepath.Join(t.TempDir(), "state.db"))
	if err == nil {
		err = store.Update(func(tx *state.Tx) error { return tx.PutMesh(&state.Mesh{ID: "mesh", Epoch: 1}) })
	}
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	err = store.Update(func(tx *state.Tx) error {
		for name, on := range map[string]string{"one": "every", "two": "tag=web"} {
			doc := strings.ReplaceAll(motd, "/etc/motd", "/etc/"+name)
			m := &state.Module{Name: name, Digest: digest.FromString(doc).String(), Placement: []string{on}}
			if err := tx.PutModule(m, []byte(doc)); err != nil {
				return err
			}
		}
		s, err := load(tx, time.Time{})
		if err != nil {
			return err
		}
		var nodes []*state.Node
		for i := range 6 {
			n := &state.Node{ID: fmt.Sprintf("id-%d", i), Name: fmt.Sprintf("n%d", i), Key: fmt.Sprint(i), State: state.Enrolled}
			if i%2 == 0 {
				n.Tags = []string{"web"}
			}
			nodes = append(nodes, n)
		}
		changed, err := s.reassign(nodes, func(_ *state.Node, err error) error { return err })
		if err != nil {
			return err
		}
		if len(changed) != 6 || len(s.composed) != 2 || len(s.parsed) != 2 {
			t.Errorf("%d nodes changed, %d compositions, %d documents read", len(changed), len(s.composed), len(s.parsed))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
