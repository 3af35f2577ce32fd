package content

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func putJSON(t testing.TB, s *Store, mediaType string, v any) v1.Descriptor {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return v1.Descriptor{MediaType: mediaType, Digest: put(t, s, string(b)), Size: int64(len(b))}
}

// putTree stores an index over one manifest with a config and the layers.
func putTree(t testing.TB, s *Store, name string, layers ...string) v1.Descriptor {
	t.Helper()
	leaf := func(c string) v1.Descriptor {
		return v1.Descriptor{MediaType: "x/y", Digest: put(t, s, c), Size: int64(len(c))}
	}
	m := map[string]any{"schemaVersion": 2, "config": leaf(name + " config"), "layers": []v1.Descriptor{}}
	var ls []v1.Descriptor
	for _, l := range layers {
		ls = append(ls, leaf(l))
	}
	m["layers"] = ls
	inner := putJSON(t, s, v1.MediaTypeImageManifest, m)
	return putJSON(t, s, v1.MediaTypeImageIndex, map[string]any{"schemaVersion": 2, "manifests": []v1.Descriptor{inner}})
}

func mark(t testing.TB, s *Store, main v1.Descriptor, name string, with ...v1.Descriptor) {
	t.Helper()
	if err := s.Mark(main, name, with...); err != nil {
		t.Fatal(err)
	}
}

func has(s *Store, content string) bool {
	return s.Has(digest.FromString(content), int64(len(content)))
}

func blobs(t testing.TB, s *Store) int {
	t.Helper()
	es, err := os.ReadDir(filepath.Join(s.Dir(), blobsDir))
	if err != nil {
		t.Fatal(err)
	}
	return len(es)
}

func keeping(k Kept) Keeper { return func(context.Context) (Kept, error) { return k, nil } }

func TestCollectKeepsWhatAMarkOrAKeeperReachesAndNothingElse(t *testing.T) {
	s := open(t, t.TempDir())
	one, two := putTree(t, s, "one", "shared", "only one"), putTree(t, s, "two", "shared", "only two")
	image := putTree(t, s, "image", "layer")
	sig := putTree(t, s, "signature", "signed")
	mark(t, s, one, "one", sig)
	mark(t, s, two, "two", sig)
	file, lost := put(t, s, "a file"), put(t, s, "nobody's")
	part := filepath.Join(s.Dir(), stagingDir, ".dead.1.1.part")
	foreign := filepath.Join(s.Dir(), blobsDir, "oci-put-blob123")
	for _, p := range []string{part, foreign} {
		if err := os.WriteFile(p, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keep := keeping(Kept{
		Blobs: []digest.Digest{file, digest.FromString("not here")},
		Trees: []digest.Digest{image.Digest, digest.FromString("not here either")},
	})
	before := tree(t, s.Dir())
	would, err := s.Garbage(ctx, keep)
	if err != nil || tree(t, s.Dir()) != before {
		t.Fatalf("looking changed something, or %v", err)
	}
	if !slices.Equal(would.Removed, []digest.Digest{lost}) || would.Bytes != 8 || would.Parts != 1 || would.PartBytes != 4 || would.Blobs != 18 {
		t.Errorf("%+v", would)
	}
	did, err := s.Collect(ctx, keep)
	if err != nil || fmt.Sprint(did) != fmt.Sprint(would) {
		t.Errorf("%+v %v, announced %+v", did, err, would)
	}
	if n := blobs(t, s); n != 18+1 || staged(t, s) != 0 {
		t.Errorf("%d blobs, %d parts", n, staged(t, s))
	}
	before = tree(t, s.Dir())
	if r, err := s.Collect(ctx, keep); err != nil || r.Removed != nil || tree(t, s.Dir()) != before {
		t.Errorf("the second time: %+v %v", r, err)
	}

	if err := s.Unmark(two.Digest); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.Marked(two.Digest); ok || err != nil {
		t.Errorf("still marked (%v)", err)
	}
	if ms, err := s.Marks(); err != nil || len(ms) != 1 || ms[0].Digest != one.Digest || ms[0].Annotations[v1.AnnotationRefName] != "one" {
		t.Errorf("%v %v", ms, err)
	}
	if r, err := s.Collect(ctx); err != nil || len(r.Removed) != 4+4+1 {
		t.Errorf("%+v %v", r, err)
	}
	if !has(s, "shared") || !has(s, "only one") || !has(s, "signed") || has(s, "only two") || has(s, "layer") || has(s, "a file") {
		t.Error("the wrong ones went")
	}
	if err := s.Unmark(one.Digest); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Collect(ctx); err != nil || blobs(t, s) != 1 {
		t.Errorf("%d are left (%v)", blobs(t, s), err)
	}
}

func TestWhatIsNotUnderstoodKeepsEverything(t *testing.T) {
	long := `{"schemaVersion":2,"manifests":[],"annotations":{"a":"` + strings.Repeat("a", maxManifest) + `"}}`
	for name, content := range map[string]string{
		"no JSON":            "x",
		"no document":        `{"schemaVersion":2}`,
		"no version":         `{"manifests":[]}`,
		"half a manifest":    `{"schemaVersion":2,"layers":[]}`,
		"both":               `{"schemaVersion":2,"manifests":[],"config":{"digest":"sha256:0"},"layers":[]}`,
		"twice the same key": `{"schemaVersion":2,"manifests":[],"manifests":[]}`,
		"other case":         `{"schemaVersion":2,"Manifests":[],"config":{},"layers":[]}`,
		"a bad digest":       `{"schemaVersion":2,"manifests":[{"digest":"sha256:../../x"}]}`,
		"a hole":             `{"schemaVersion":2,"manifests":[{"digest":"` + digest.FromString("hole").String() + `"}]}`,
		"too long":           long,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			put(t, s, "garbage")
			main := v1.Descriptor{MediaType: v1.MediaTypeImageIndex, Digest: put(t, s, content), Size: int64(len(content))}
			mark(t, s, main, "x")
			before := tree(t, s.Dir())
			r, err := s.Collect(ctx)
			if fault.KindOf(err) != fault.Failed || err == nil || fault.RemedyOf(err) == "" || r.Removed != nil || tree(t, s.Dir()) != before {
				t.Errorf("%+v %v", r, err)
			}
			if err := s.Unmark(main.Digest); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Collect(ctx); err != nil || len(r.Removed) != 2 {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
	t.Run("damaged", func(t *testing.T) {
		s := open(t, t.TempDir())
		main := putTree(t, s, "one", "layer")
		mark(t, s, main, "x")
		put(t, s, "garbage")
		b, _ := os.ReadFile(s.blob(main.Digest))
		if err := os.WriteFile(s.blob(main.Digest), bytes.ToUpper(b), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Collect(ctx); err == nil || r.Removed != nil || !has(s, "garbage") || !s.Has(main.Digest, -1) {
			t.Errorf("%+v %v", r, err)
		}
	})
	t.Run("lost marks", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		put(t, s, "garbage")
		if err := os.WriteFile(filepath.Join(dir, "index.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Collect(ctx); err == nil {
			t.Error("collected with an index that cannot be read")
		}
		s = open(t, dir)
		if _, err := s.Collect(ctx); err == nil || fault.RemedyOf(err) == "" || !has(s, "garbage") {
			t.Errorf("%v", err)
		}
		if err := os.Remove(filepath.Join(dir, "index.json.damaged")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Collect(ctx); err != nil || has(s, "garbage") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a keeper that fails", func(t *testing.T) {
		s := open(t, t.TempDir())
		put(t, s, "garbage")
		locked := errors.New("the store is locked")
		_, err := s.Collect(ctx, func(context.Context) (Kept, error) { return Kept{}, locked })
		if !errors.Is(err, locked) || !has(s, "garbage") {
			t.Error(err)
		}
	})
}

func TestALeaseHoldsACollectionOff(t *testing.T) {
	dir := t.TempDir()
	s, other := open(t, dir), open(t, dir)
	put(t, s, "found there")
	w, err := other.Writer()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Put(ctx, digest.FromString("new"), 3, strings.NewReader("new")); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Collect(ctx); !errors.Is(err, ErrInUse) || r.Removed != nil || !has(s, "found there") || staged(t, s) != 1 {
		t.Errorf("%+v %v", r, err)
	}
	if err := w.Close(); err != nil || !has(s, "new") {
		t.Fatalf("what came whole is not kept: %v", err)
	}
	if r, err := s.Collect(ctx); err != nil || len(r.Removed) != 2 {
		t.Errorf("%+v %v", r, err)
	}
	// A keeper is asked when no lease can be taken any more.
	_, err = s.Collect(ctx, func(context.Context) (Kept, error) {
		if _, err := other.alone(); !errors.Is(err, ErrInUse) {
			t.Errorf("somebody else could begin: %v", err)
		}
		return Kept{}, nil
	})
	if err != nil {
		t.Error(err)
	}
}
