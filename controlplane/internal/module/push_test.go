package module_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// release is a bundle that declares one file.
func release(counter uint64, arch, path string) (state.Pushed, []byte) {
	doc := file(path)
	return state.Pushed{Name: "web", Version: fmt.Sprintf("1.0.%d", counter), Counter: counter, Architecture: arch,
		Bundle: digest.FromString(fmt.Sprint(counter, arch, path)).String(), Signers: []string{"k"}}, []byte(doc)
}

func (m *mesh) push(p state.Pushed, doc []byte, on ...string) (c module.Change, err error) {
	m.t.Helper()
	err = m.Update(func(tx *state.Tx) (err error) {
		_, c, err = module.Push(tx, now, p, doc, on, false, func(digest.Digest) bool { return true })
		return err
	})
	return c, err
}

func (m *mesh) pushed(counter uint64, arch, path string, on ...string) module.Change {
	m.t.Helper()
	p, doc := release(counter, arch, path)
	c, err := m.push(p, doc, on...)
	if err != nil {
		m.t.Fatal(err)
	}
	return c
}

func (m *mesh) keys(name string) (out []string) {
	m.t.Helper()
	_, d := m.wanted(name)
	for i := range d.Resources {
		out = append(out, d.Resources[i].Key())
	}
	return out
}

func machines(t *testing.T) *mesh {
	x, arm := node("x", "web"), node("arm", "web")
	x.Profile.Architecture, arm.Profile.Architecture = "x86_64", "aarch64"
	return newMesh(t, x, arm)
}

func TestAPushedBundleIsWhereItIsPlacedForItsArchitecture(t *testing.T) {
	m := machines(t)
	if c := m.pushed(1, "x86_64", "/srv/one"); !c.Changed || len(c.Nodes) != 0 || c.Present != 0 {
		t.Errorf("a new one without --on: %+v", c)
	}
	if c := m.pushed(1, "x86_64", "/srv/one", "tag=web"); !slices.Equal(c.Nodes, []string{"id-x"}) || c.Present != 1 {
		t.Errorf("placed: %+v", c)
	}
	if got := m.keys("x"); !slices.Equal(got, []string{"file:/srv/one"}) {
		t.Errorf("x has %v", got)
	}
	if got := m.keys("arm"); len(got) != 0 {
		t.Errorf("arm has %v of a bundle for another architecture", got)
	}
	// Its own comes, and is where the name is.
	if c := m.pushed(2, "aarch64", "/srv/two"); !slices.Equal(c.Nodes, []string{"id-arm"}) {
		t.Errorf("for the other architecture: %+v", c)
	}
	// A newer one keeps the placement; the same again is nothing.
	if c := m.pushed(3, "x86_64", "/srv/three"); !slices.Equal(c.Nodes, []string{"id-x"}) {
		t.Errorf("a newer one: %+v", c)
	}
	if c := m.pushed(3, "x86_64", "/srv/three"); c.Changed || len(c.Nodes) != 0 {
		t.Errorf("the same again: %+v", c)
	}
	if x, arm := m.keys("x"), m.keys("arm"); !slices.Equal(x, []string{"file:/srv/three"}) || !slices.Equal(arm, []string{"file:/srv/two"}) {
		t.Errorf("x has %v, arm has %v", x, arm)
	}
	// Another placement is that of both.
	if c := m.pushed(3, "x86_64", "/srv/three", "node=arm"); !slices.Equal(c.Nodes, []string{"id-x"}) {
		t.Errorf("moved: %+v", c)
	}
	if x, arm := m.keys("x"), m.keys("arm"); len(x) != 0 || !slices.Equal(arm, []string{"file:/srv/two"}) {
		t.Errorf("moved: x has %v, arm has %v", x, arm)
	}
	// Undeclared, it is nowhere.
	err := m.Update(func(tx *state.Tx) error { _, err := module.Undeclare(tx, now, "web"); return err })
	if arm := m.keys("arm"); err != nil || len(arm) != 0 {
		t.Errorf("undeclared: arm has %v, %v", arm, err)
	}
}

func TestWhatAPushIsRefusedFor(t *testing.T) {
	m := machines(t)
	m.must("other", file("/srv/same"), "every")
	p, doc := release(1, "x86_64", "/srv/same")
	if _, err := m.push(p, doc, "tag=web"); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), `"other"`) || !strings.Contains(err.Error(), `"web"`) {
		t.Errorf("a conflict: %v", err)
	}
	if _, err := m.push(p, doc, "node=nobody"); fault.KindOf(err) != fault.Refused {
		t.Errorf("a node that is not there: %v", err)
	}
	m.must("web", file("/srv/mine"), "every")
	p, doc = release(1, "x86_64", "/srv/one")
	if _, err := m.push(p, doc, "every"); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "a person declared") {
		t.Errorf("in the place of what a person declared: %v", err)
	}
	if got := m.keys("x"); !slices.Equal(got, []string{"file:/srv/same", "file:/srv/mine"}) {
		t.Errorf("x has %v", got)
	}
	// And the other way round.
	n := machines(t)
	n.pushed(1, "x86_64", "/srv/one", "every")
	if _, err := n.declare("web", file("/srv/mine"), "every"); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "bundle") {
		t.Errorf("a declaration in the place of a bundle: %v", err)
	}
}

// The first node's own bundle was taken over as a module of that machine. A newer one
// takes its place where a person says so, and changes what is different only.
func TestANewerBundleTakesThePlaceOfWhatAMachineBroughtAlong(t *testing.T) {
	m := machines(t)
	brought := strings.Replace(file("/srv/one"), `"name":"x"`, `"name":"web"`, 1)
	if got := m.take("x", brought); got != "web" {
		t.Fatalf("taken over as %q", got)
	}
	n, _ := m.wanted("x")
	before := n.Wanted
	if c := m.pushed(1, "x86_64", "/srv/one"); len(c.Nodes) != 0 || c.Present != 0 {
		t.Errorf("without --on: %+v", c)
	}
	if c := m.pushed(1, "x86_64", "/srv/one", "node=x"); c.Present != 1 {
		t.Errorf("with --on: %+v", c)
	}
	if n, _ := m.wanted("x"); n.Wanted.Content != before.Content || n.Wanted.Generation != before.Generation {
		t.Errorf("the same things are another generation: %+v, %+v", before, n.Wanted)
	}
	if c := m.pushed(2, "x86_64", "/srv/two"); !slices.Equal(c.Nodes, []string{"id-x"}) {
		t.Errorf("a newer one: %+v", c)
	}
	// The name is taken: who brings it along next has another.
	if got := m.take("arm", brought); got != "web-2" {
		t.Errorf("another machine's is %q", got)
	}
}

// The placement of a name is that of all its architectures: a secret in one of them is
// one in all.
func TestASecretOfAnotherArchitectureIsNotPlacedByAClaim(t *testing.T) {
	m := machines(t)
	p, _ := release(1, "aarch64", "/srv/key")
	doc := `{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":"/srv/key","content":"k","secret":true,"mode":"0600"}]}`
	if _, err := m.push(p, []byte(doc), "node=arm"); err != nil {
		t.Fatal(err)
	}
	q, plain := release(1, "x86_64", "/srv/one")
	if _, err := m.push(q, plain, "every"); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "secret") {
		t.Errorf("placed by a claim: %v", err)
	}
	if _, err := m.push(q, plain, "tag=web"); err != nil {
		t.Errorf("placed by a tag: %v", err)
	}
}

// Two nodes that are to be composed anew have not the same for that.
func TestWhatOneNodeHadIsNoOthers(t *testing.T) {
	m := machines(t)
	m.must("one", file("/srv/x-only"), "node=x")
	m.must("two", file("/srv/arm-only"), "node=arm")
	err := m.Update(func(tx *state.Tx) error {
		for _, name := range []string{"x", "arm"} {
			n, err := tx.NodeByName(name)
			if err != nil {
				return err
			}
			n.Wanted.Content = ""
			if err := tx.PutNode(n); err != nil {
				return err
			}
		}
		_, err := module.Undeclare(tx, now, "one")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	m.must("three", file("/srv/three"), "every")
	err = m.View(func(tx *state.Tx) error {
		for node, mine := range map[string]string{"id-x": "file:/srv/x-only", "id-arm": ""} {
			for key := range tx.Leavings(node) {
				if key != mine {
					t.Errorf("%s is told of %s", node, key)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
