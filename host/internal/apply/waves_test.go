package apply

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

func TestWaves(t *testing.T) {
	f := func(path string, after ...string) member {
		return member{sort: "file", id: path, path: path, after: after}
	}
	alone := func(id string, after ...string) member { return member{id: id, after: after} }
	link := func(path string) member { return member{sort: "file symlink", id: path, path: path} }
	for name, c := range map[string]struct {
		list []member
		want [][]int
	}{
		"nothing":                             {nil, nil},
		"neighbours go together":              {[]member{f("/a"), f("/b"), f("/c")}, [][]int{{0, 1, 2}}},
		"other kinds go alone":                {[]member{alone("p"), alone("q"), f("/a"), f("/b"), alone("r")}, [][]int{{0}, {1}, {2, 3}, {4}}},
		"after one of them":                   {[]member{f("/a"), f("/b", "/a"), f("/c"), f("/d", "/b")}, [][]int{{0, 2}, {1}, {3}}},
		"after what is elsewhere":             {[]member{f("/a", "p"), f("/b", "p")}, [][]int{{0, 1}}},
		"in a directory that is one of them":  {[]member{f("/d"), f("/d/a"), f("/d/b"), f("/e"), f("/d/c/x")}, [][]int{{0, 3}, {1, 2, 4}}},
		"a directory that others are in":      {[]member{f("/d/a"), f("/d/b/c"), f("/d")}, [][]int{{0, 1}, {2}}},
		"a name that begins alike is no path": {[]member{f("/d"), f("/dd"), f("/d.d/x")}, [][]int{{0, 1, 2}}},
		"deep":                                {[]member{f("/a"), f("/a/b"), f("/a/b/c"), f("/a/b/c/d")}, [][]int{{0}, {1}, {2}, {3}}},
		"symlinks apart from what goes that way": {
			[]member{f("/a"), link("/l"), link("/m"), f("/l/x"), f("/m/x")}, [][]int{{0}, {1, 2}, {3, 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := waves(c.list); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	t.Run("not too many", func(t *testing.T) {
		var many []member
		for i := range maxWave + 1 {
			many = append(many, f(fmt.Sprintf("/%d", i)))
		}
		if got := waves(many); len(got) != 2 || len(got[0]) != maxWave || got[1][0] != maxWave {
			t.Errorf("%d waves", len(got))
		}
	})
}

// atOnce is a kind of units that remembers how many came together.
type atOnce struct {
	resource.Kind
	crowds *[]int
	mu     *sync.Mutex
	here   map[string]bool
}

func (k atOnce) Together(n int) resource.Kind { *k.crowds = append(*k.crowds, n); return k }

func (k atOnce) Check(_ context.Context, w resource.Want, _ *resource.Record) (resource.State, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	here := k.here[w.Resource.Unit.Name]
	return resource.State{Same: here, Exists: here}, nil
}

func (k atOnce) Apply(_ context.Context, w resource.Want, _ *resource.Record, _ resource.State) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.here[w.Resource.Unit.Name] = true
	return nil
}

func (k atOnce) Remove(_ context.Context, r resource.Record) (declaration.Outcome, string, error) {
	return declaration.Removed, "", nil
}

func TestUnitsAreAppliedTogetherAndRemovedOneByOne(t *testing.T) {
	l := newLab(t)
	var crowds []int
	l.engine.Kinds[declaration.TypeUnit] = atOnce{crowds: &crowds, mu: &sync.Mutex{}, here: map[string]bool{}}
	u := func(name, more string) string {
		return fmt.Sprintf(`{"id": %q, "type": "unit", "name": "%s.service", "active": true%s}`, name, name, more)
	}
	l.want(l.applied(u("a", ""), u("b", ""), u("c", `, "after": ["a"]`), u("d", `, "after": ["c"]`), u("e", ""), aFile("f", "/etc/f", "1"), u("g", "")),
		"applied unit:a.service", "applied unit:b.service", "applied unit:c.service", "applied unit:d.service", "applied unit:e.service",
		"applied file:/etc/f", "applied unit:g.service")
	if want := []int{3}; !reflect.DeepEqual(crowds, want) {
		t.Errorf("crowds of %v, want %v", crowds, want)
	}
	l.want(l.applied(), "removed unit:g.service", "removed file:/etc/f",
		"removed unit:d.service", "removed unit:c.service", "removed unit:e.service", "removed unit:b.service", "removed unit:a.service")
	if len(crowds) != 1 {
		t.Errorf("removed in crowds of %v", crowds)
	}
}

// half is atOnce, whose things fail in a crowd when half of them is done.
type half struct {
	atOnce
	crowded bool
}

func (k half) Together(int) resource.Kind { k.crowded = true; return k }

func (k half) Check(ctx context.Context, w resource.Want, prior *resource.Record) (resource.State, error) {
	st, err := k.atOnce.Check(ctx, w, prior)
	if st.Same && prior == nil {
		st.Found = []byte(`"was there"`)
	}
	return st, err
}

func (k half) Apply(ctx context.Context, w resource.Want, prior *resource.Record, found resource.State) error {
	if err := k.atOnce.Apply(ctx, w, prior, found); err != nil || !k.crowded {
		return err
	}
	return errors.New("cannot start it in a crowd")
}

func TestWhatACrowdLeftHalfDoneWasNotThereBefore(t *testing.T) {
	l := newLab(t)
	l.engine.Kinds[declaration.TypeUnit] = half{atOnce: atOnce{crowds: new([]int), mu: &sync.Mutex{}, here: map[string]bool{}}}
	l.want(l.applied(`{"id": "a", "type": "unit", "name": "a.service", "active": true}`, `{"id": "b", "type": "unit", "name": "b.service", "active": true}`),
		"applied unit:a.service", "applied unit:b.service")
	records, err := l.engine.Store.Records()
	if err != nil || len(records) != 2 {
		t.Fatalf("%v, %v", records, err)
	}
	for _, r := range records {
		if r.Before != nil || r.Adopted {
			t.Errorf("%s: before there was %s, adopted %v", r.Key, r.Before, r.Adopted)
		}
	}
}

func TestRunsKeepTheOrder(t *testing.T) {
	f := func(path string) member { return member{sort: "file", id: path, path: path} }
	got := runs([]member{f("/d/a"), f("/e"), f("/d"), f("/x"), f("/y/z"), f("/y"), {id: "p"}})
	if want := [][]int{{0, 1}, {2, 3, 4}, {5}, {6}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
