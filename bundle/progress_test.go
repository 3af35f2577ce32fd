package bundle

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestABuildSaysHowFarItIs(t *testing.T) {
	spec := specOf(1<<20, newKey(t))
	last := map[string]Progress{}
	var order []string
	titles := map[string]map[string]bool{}
	spec.Progress = func(doing string, p Progress) {
		if last[doing] == (Progress{}) {
			order = append(order, doing)
			titles[doing] = map[string]bool{}
		}
		if p.Done < last[doing].Done || p.Done > p.Total {
			t.Errorf("%s: %d after %d, of %d", doing, p.Done, last[doing].Done, p.Total)
		}
		last[doing] = p
		titles[doing][p.Title] = true
	}
	if _, err := Build(t.Context(), filepath.Join(t.TempDir(), "b.tar"), spec); err != nil {
		t.Fatal(err)
	}
	if want := []string{"writing", "reading back"}; !slices.Equal(order, want) {
		t.Fatalf("it was %q, want %q", order, want)
	}
	for doing, p := range last {
		if p.Done != p.Total || p.Total < 1<<20 {
			t.Errorf("%s ends at %d of %d", doing, p.Done, p.Total)
		}
		if !titles[doing]["large"] {
			t.Errorf("%s: the titles are %v", doing, titles[doing])
		}
	}
}
