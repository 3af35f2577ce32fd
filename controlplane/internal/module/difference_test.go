package module_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
)

func TestAPlanSaysWhatBecomesOfEachNodeAndDoesNothing(t *testing.T) {
	m := newMesh(t, node("a"), node("b"), node("c"))
	two := `{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":"/1","content":"x"},{"id":"g","type":"file","path":"/2","content":"x"}]}`
	other := `{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":"/1","content":"y"},{"id":"h","type":"file","path":"/3","content":"x"}]}`
	m.must("m", two, "node=a", "node=c")
	plan := func(doc string, on ...string) (c module.Change) {
		t.Helper()
		err := m.Try(func(tx *state.Tx) (err error) {
			c, err = module.Plan(tx, now, module.Wish{Name: "m", Document: []byte(doc), Placement: on}, func(digest.Digest) bool { return true })
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	got := plan(other, "node=a", "node=b")
	want := []module.Difference{
		{ID: "id-a", Node: "a", Appear: []string{"file:/3"}, Change: []string{"file:/1"}, Go: []string{"file:/2"}},
		{ID: "id-b", Node: "b", Appear: []string{"file:/1", "file:/3"}, Change: []string{}, Go: []string{}},
		{ID: "id-c", Node: "c", Appear: []string{}, Change: []string{}, Go: []string{"file:/1", "file:/2"}},
	}
	if !reflect.DeepEqual(got.Plan, want) || got.Version != 2 || got.Present != 2 {
		t.Errorf("%+v", got)
	}
	if c := plan(two); c.Changed || len(c.Plan) != 0 {
		t.Errorf("the same again: %+v", c)
	}
	renamed := strings.ReplaceAll(two, `"id":"f"`, `"id":"other"`)
	if c := plan(renamed); len(c.Plan) != 2 || len(c.Plan[0].Appear)+len(c.Plan[0].Change)+len(c.Plan[0].Go) != 0 {
		t.Errorf("only an id: %+v", c)
	}
	if n, d := m.wanted("a"); n.Wanted.Generation != 2 || len(d.Resources) != 2 || !n.Wanted.At.Equal(now) {
		t.Errorf("a plan did something: %+v", n.Wanted)
	}
}

func TestADeclareSaysOnHowManyNodesTheModuleIs(t *testing.T) {
	m := newMesh(t, node("a"), node("b"))
	for _, c := range []struct {
		on      []string
		present int
	}{{nil, 0}, {[]string{"tag=none"}, 0}, {[]string{"node=a"}, 1}, {[]string{"every"}, 2}, {nil, 2}} {
		if got := m.must("m", file("/x"), c.on...); got.Present != c.present {
			t.Errorf("on %v: %+v", c.on, got)
		}
	}
}
