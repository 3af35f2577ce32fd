package content

import (
	"fmt"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// named is what index.json says of each name.
func named(t testing.TB, s *Store) string {
	t.Helper()
	index, err := s.readIndex()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range index.Manifests {
		if name := e.Annotations[v1.AnnotationRefName]; name != "" {
			out = append(out, fmt.Sprintf("%s=%.4s", name, e.Digest.Encoded()))
		}
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

// An image within a bundle has a name in the store, for other tools. It is kept as
// long as its bundle, and a name has one image: that of the bundle that came last.
func TestImagesHaveNamesAsLongAsTheirBundle(t *testing.T) {
	s := open(t, t.TempDir())
	// bundle is an index over an image.
	bundle := func(version string, title string) (main, image v1.Descriptor) {
		inner := putTree(t, s, title+version, "layer of "+title+version)
		main = putJSON(t, s, v1.MediaTypeImageIndex, map[string]any{"schemaVersion": 2, "manifests": []v1.Descriptor{inner}, "annotations": map[string]string{"v": version}})
		inner.Annotations = map[string]string{v1.AnnotationRefName: title}
		return main, inner
	}
	short := func(d v1.Descriptor) string { return d.Digest.Encoded()[:4] }
	one, web1 := bundle("1", "web")
	two, web2 := bundle("2", "web")
	sig := putTree(t, s, "signature", "signed")
	mark(t, s, one, "site-1", sig, web1)
	before := tree(t, s.Dir())
	mark(t, s, one, "site-1", sig, web1)
	if tree(t, s.Dir()) != before {
		t.Error("an equal mark was written")
	}
	if got, want := named(t, s), fmt.Sprintf("[site-1=%s web=%s]", short(one), short(web1)); got != want {
		t.Errorf("named %s, want %s", got, want)
	}
	mark(t, s, two, "site-2", sig, web2)
	if got, want := named(t, s), fmt.Sprintf("[site-1=%s site-2=%s web=%s]", short(one), short(two), short(web2)); got != want {
		t.Errorf("named %s, want %s", got, want)
	}
	marks, err := s.Marks()
	if err != nil || len(marks) != 2 {
		t.Errorf("the marks are %+v, %v", marks, err)
	}
	with, ok, err := s.Marked(one.Digest)
	if err != nil || !ok || len(with) != 2 || with[1].Digest != web1.Digest {
		t.Errorf("with it: %+v, %t, %v", with, ok, err)
	}

	// It is gone with its bundle, entry and blobs, and no earlier.
	if r, err := s.Collect(ctx); err != nil || r.Removed != nil {
		t.Errorf("%+v, %v", r, err)
	}
	r, err := s.Collect(ctx, keeping(Kept{Unmark: []digest.Digest{two.Digest}}))
	if err != nil || !slices.Equal(r.Unmarked, []digest.Digest{two.Digest}) || has(s, "layer of web2") || !has(s, "layer of web1") {
		t.Errorf("%+v, %v", r, err)
	}
	if got, want := named(t, s), fmt.Sprintf("[site-1=%s]", short(one)); got != want {
		t.Errorf("named %s, want %s", got, want)
	}
	// Read again, the older bundle has all its names.
	mark(t, s, one, "site-1", sig, web1)
	if got, want := named(t, s), fmt.Sprintf("[site-1=%s web=%s]", short(one), short(web1)); got != want {
		t.Errorf("named %s, want %s", got, want)
	}

	// An image that is called as a bundle is takes no name from it.
	evil, called := bundle("3", "site-1")
	mark(t, s, evil, "evil", called)
	if got, want := named(t, s), fmt.Sprintf("[evil=%s site-1=%s web=%s]", short(evil), short(one), short(web1)); got != want {
		t.Errorf("named %s, want %s", got, want)
	}
}
