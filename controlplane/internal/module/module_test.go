package module_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const blob = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"

func file(path string) string {
	return fmt.Sprintf(`{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":%q,"content":"<a & b>\n"}]}`, path)
}

type mesh struct {
	t *testing.T
	*state.Store
}

func newMesh(t *testing.T, nodes ...*state.Node) *mesh {
	t.Helper()
	s, err := state.Open(filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	m := &mesh{t, s}
	if err := s.Update(func(tx *state.Tx) error { return tx.PutMesh(&state.Mesh{ID: "mesh", Epoch: 1}) }); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		m.add(n)
	}
	return m
}

func node(name string, tags ...string) *state.Node {
	return &state.Node{ID: "id-" + name, Name: name, Key: "key-" + name, Tags: tags, State: state.Enrolled}
}

func (m *mesh) add(n *state.Node) {
	m.t.Helper()
	err := m.Update(func(tx *state.Tx) error {
		_, _ = module.Assign(tx, now, n)
		return tx.PutNode(n)
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *mesh) declare(name, doc string, on ...string) (c module.Change, err error) {
	err = m.Update(func(tx *state.Tx) error {
		c, err = module.Declare(tx, now, module.Wish{Name: name, Document: []byte(doc), Placement: on}, func(d digest.Digest) bool { return d == blob })
		return err
	})
	return c, err
}

func (m *mesh) must(name, doc string, on ...string) module.Change {
	m.t.Helper()
	c, err := m.declare(name, doc, on...)
	if err != nil {
		m.t.Fatal(err)
	}
	return c
}

// wanted returns a node and what it shall be.
func (m *mesh) wanted(name string) (n *state.Node, d *declaration.Declaration) {
	m.t.Helper()
	err := m.View(func(tx *state.Tx) (err error) {
		if n, err = tx.NodeByName(name); err != nil {
			return err
		}
		doc := tx.Declaration(n.ID)
		if digest.FromBytes(doc).String() != n.Wanted.Digest || int64(len(doc)) != n.Wanted.Size {
			m.t.Errorf("node %q: wanted %+v is not what is stored", name, n.Wanted)
		}
		d, err = declaration.Parse(doc)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	if d.Name != name || d.Generation != n.Wanted.Generation {
		m.t.Errorf("node %q: document is %q generation %d, record says %d", name, d.Name, d.Generation, n.Wanted.Generation)
	}
	return n, d
}

func TestComposedResourcesAreTheSameWishUnderAnotherID(t *testing.T) {
	const doc = `{"schema":1,"name":"control-plane","generation":7,"resources":[
	  {"id":"config","type":"file","path":"/etc/c","mode":"0640","content":"a <b> & c\n","secret":true},
	  {"id":"binary","type":"file","path":"/usr/local/bin/s","mode":"0755","source":"` + blob + `"},
	  {"id":"server","type":"process","name":"s","command":["/usr/local/bin/s"],"env":{"A":"1"},"user":"500",
	   "after":["config","binary"],"restart_on":["binary"],"take_over":true}]}`
	m := newMesh(t, node("a"))
	m.must("cp", doc, "node=a")
	before, err := declaration.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	n, after := m.wanted("a")
	if len(after.Resources) != 3 {
		t.Fatalf("%d resources", len(after.Resources))
	}
	for i := range after.Resources {
		b, a := before.Resources[i], after.Resources[i]
		if string(a.Spec()) != string(b.Spec()) || a.TakeOver != b.TakeOver || a.Key() != b.Key() {
			t.Errorf("resource %q became another wish:\n%s\n%s", b.ID, b.Spec(), a.Spec())
		}
	}
	s := after.Resources[2]
	if s.ID != "cp/server" || !reflect.DeepEqual(s.After, []string{"cp/config", "cp/binary"}) || !reflect.DeepEqual(s.RestartOn, []string{"cp/binary"}) {
		t.Errorf("server: %q after %v, restart on %v", s.ID, s.After, s.RestartOn)
	}
	if !reflect.DeepEqual(n.Wanted.Sources, []string{blob}) {
		t.Errorf("sources %v", n.Wanted.Sources)
	}
}

func TestGenerationGrowsOnlyWhenTheCompositionChanges(t *testing.T) {
	m := newMesh(t, node("a"), node("b"))
	generation := func(name string, want uint64) {
		t.Helper()
		if n, _ := m.wanted(name); n.Wanted.Generation != want {
			t.Errorf("node %q has generation %d, want %d", name, n.Wanted.Generation, want)
		}
	}
	generation("a", 1)
	if c := m.must("one", file("/etc/1"), "node=a"); !reflect.DeepEqual(c.Nodes, []string{"id-a"}) {
		t.Errorf("changed %v", c.Nodes)
	}
	generation("a", 2)
	generation("b", 1)
	if c := m.must("one", file("/etc/1"), "node=a"); c.Changed || len(c.Nodes) != 0 || c.Version != 1 {
		t.Errorf("the same again: %+v", c)
	}
	// Other bytes, the same wish: the module is another, its nodes are not.
	if c := m.must("one", strings.Replace(file("/etc/1"), `"schema":1`, `"schema": 1`, 1), "node=a"); !c.Changed || len(c.Nodes) != 0 || c.Version != 2 {
		t.Errorf("the same wish: %+v", c)
	}
	if c := m.must("one", file("/etc/1"), "every"); len(c.Nodes) != 1 || c.Nodes[0] != "id-b" {
		t.Errorf("moved to every: %+v", c)
	}
	generation("a", 2)
	generation("b", 2)
	if c := m.must("one", file("/etc/2")); len(c.Nodes) != 2 {
		t.Errorf("no --on keeps the placement: %+v", c)
	}
	if c := m.must("two", file("/etc/1")); !c.Changed || len(c.Nodes) != 0 {
		t.Errorf("a new module without --on is nowhere: %+v", c)
	}
	err := m.Update(func(tx *state.Tx) error {
		_, err := module.Undeclare(tx, now, "one")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	generation("a", 4)
	if _, d := m.wanted("a"); len(d.Resources) != 0 {
		t.Errorf("undeclared, and still %d resources", len(d.Resources))
	}
}

func TestAConflictIsRefusedAndNamesBothModulesAndTheThing(t *testing.T) {
	m := newMesh(t, node("a", "web"), node("b"))
	m.must("one", file("/etc/same"), "tag=web")
	_, err := m.declare("two", file("/etc/same"), "every")
	if fault.KindOf(err) != fault.Refused {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{`"one"`, `"two"`, `"file:/etc/same"`, `"a"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	if n, _ := m.wanted("a"); n.Wanted.Generation != 2 || n.Conflict != "" {
		t.Errorf("the node was touched: %+v", n)
	}
	m.must("two", file("/etc/same"), "node=b")
	if _, err := m.declare("two", file("/etc/same"), "node=a"); err == nil {
		t.Error("moving into a conflict was let through")
	}
}

func TestAConflictThatALaterNodeBringsAboutLeavesThatNodeAlone(t *testing.T) {
	m := newMesh(t, node("a", "web"), node("b", "db"))
	m.must("one", file("/etc/same"), "tag=web")
	m.must("two", file("/etc/same"), "tag=db")
	m.add(node("c", "web", "db"))
	find := func() (n *state.Node) {
		_ = m.View(func(tx *state.Tx) (err error) { n, err = tx.NodeByName("c"); return err })
		return n
	}
	if n := find(); n.Wanted.Generation != 0 || !strings.Contains(n.Conflict, "/etc/same") {
		t.Errorf("node %+v", n)
	}
	// What has nothing to do with it can still be declared, there too.
	m.must("three", file("/etc/other"), "every")
	if _, err := m.declare("one", file("/etc/different"), "tag=web"); err != nil {
		t.Fatal(err)
	}
	if n, d := m.wanted("c"); n.Conflict != "" || len(d.Resources) != 3 {
		t.Errorf("the conflict is resolved, and the node is %+v", n)
	}
}

func TestWhatCannotBeDeclared(t *testing.T) {
	m := newMesh(t, node("a"))
	long := strings.Replace(file("/x"), `"id":"f"`, `"id":"`+strings.Repeat("i", 199)+`"`, 1)
	secret := strings.Replace(file("/x"), `"content"`, `"secret":true,"content"`, 1)
	dangling := `{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":"/x","source":"sha256:` + strings.Repeat("0", 64) + `"}]}`
	for name, c := range map[string]struct {
		module, doc string
		on          []string
		kind        fault.Kind
	}{
		"not valid":         {"m", `{"schema":1}`, nil, fault.Refused},
		"dangling":          {"m", dangling, nil, fault.Refused},
		"id too long":       {"m", long, nil, fault.Refused},
		"unknown node":      {"m", file("/x"), []string{"node=z"}, fault.Refused},
		"secret everywhere": {"m", secret, []string{"every"}, fault.Refused},
		"secret by profile": {"m", secret, []string{"profile.init=systemd"}, fault.Refused},
		"bad name":          {"M x", file("/x"), nil, fault.Usage},
		"bad rule":          {"m", file("/x"), []string{"nodes=a"}, fault.Usage},
		"empty rule":        {"m", file("/x"), []string{"tag="}, fault.Usage},
		"bad key":           {"m", file("/x"), []string{"profile.hostname=a"}, fault.Usage},
	} {
		if _, err := m.declare(c.module, c.doc, c.on...); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v (kind %d, want %d)", name, err, fault.KindOf(err), c.kind)
		}
	}
	_ = m.View(func(tx *state.Tx) error {
		if ms, err := tx.Modules(); len(ms) != 0 || err != nil {
			t.Errorf("modules are there: %v, %v", ms, err)
		}
		return nil
	})
	if _, err := m.declare("m", secret, "node=a"); err != nil {
		t.Errorf("a secret by name: %v", err)
	}
}

func TestPlacement(t *testing.T) {
	arch := node("a", "web")
	arch.Profile = profile.Profile{Architecture: "arm64", Distribution: "arch"}
	waits := node("p")
	waits.State = state.Pending
	gone := node("r")
	gone.State = state.Revoked
	for rule, want := range map[string][]string{
		"every":                       {"id-a", "id-b"},
		"node=b":                      {"id-b"},
		"tag=web":                     {"id-a"},
		"tag=none":                    {},
		"profile.architecture=arm64":  {"id-a"},
		"profile.distribution=debian": {},
	} {
		a := *arch // each mesh writes on its own
		m := newMesh(t, &a, node("b"), waits, gone)
		if c := m.must("m", file("/x"), rule); !reflect.DeepEqual(c.Nodes, want) {
			t.Errorf("%s: %v, want %v", rule, c.Nodes, want)
		}
	}
}

// take has the machine of a node bring a declaration along.
func (m *mesh) take(name, doc string) (got string) {
	m.t.Helper()
	err := m.Update(func(tx *state.Tx) error {
		n, err := tx.NodeByName(name)
		if err != nil {
			return err
		}
		b, err := module.Bring([]byte(doc))
		if err != nil {
			return err
		}
		if got, err = module.TakeOver(tx, now, n, b); err != nil {
			return err
		}
		_, err = module.AssignBrought(tx, now, n, got, b)
		return errors.Join(err, tx.PutNode(n))
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return got
}

func TestTakeOverIsAModuleOfThatNodeAlone(t *testing.T) {
	m := newMesh(t, node("a"), node("b"))
	doc := file("/etc/x")
	if got := m.take("a", doc); got != "x" {
		t.Errorf("first: %q", got)
	}
	if got := m.take("a", doc); got != "x" {
		t.Errorf("the same again: %q", got)
	}
	// The same bytes on another machine do not make it a recipient of x.
	if got := m.take("b", doc); got != "x-2" {
		t.Errorf("another node: %q", got)
	}
	// What it brings when it comes back takes the place of what it brought.
	if got := m.take("b", file("/etc/y")); got != "x-2" {
		t.Errorf("other content: %q", got)
	}
	if _, d := m.wanted("b"); len(d.Resources) != 1 || d.Resources[0].Key() != "file:/etc/y" {
		t.Errorf("%+v", d.Resources)
	}
}

// A machine chooses the name of what it brings along, so that name must not
// decide where a person's words go: they may be a secret.
func TestANameThatAMachineTookIsDeclaredWithAPlaceOnly(t *testing.T) {
	m := newMesh(t, node("evil"), node("db", "db"))
	if got := m.take("evil", strings.Replace(file("/etc/mine"), `"name":"x"`, `"name":"vault"`, 1)); got != "vault" {
		t.Fatalf("taken over as %q", got)
	}
	secret := strings.Replace(file("/etc/vault"), `"content"`, `"secret":true,"content"`, 1)
	_, err := m.declare("vault", secret)
	if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), `"evil"`) || !strings.Contains(fault.RemedyOf(err), "--on node=evil") {
		t.Errorf("%v; %s", err, fault.RemedyOf(err))
	}
	if _, d := m.wanted("evil"); len(d.Resources) != 1 || d.Resources[0].File.Path != "/etc/mine" {
		t.Errorf("the node that took the name has %+v", d.Resources)
	}
	m.must("vault", secret, "tag=db")
	if _, d := m.wanted("evil"); len(d.Resources) != 0 {
		t.Errorf("the node that took the name has %+v", d.Resources)
	}
	// It is a person's now, and keeps the place that person gave.
	m.must("vault", strings.Replace(secret, "a & b", "b", 1))
	if _, d := m.wanted("db"); len(d.Resources) != 1 {
		t.Errorf("the node it was placed on has %+v", d.Resources)
	}
}

func TestAMachineDoesNotJoinWhatAPersonDeclaredForIt(t *testing.T) {
	m := newMesh(t, node("a"))
	m.must("x", file("/etc/x"), "node=a")
	err := m.Update(func(tx *state.Tx) error {
		n, err := tx.NodeByName("a")
		if err != nil {
			return err
		}
		b, err := module.Bring([]byte(file("/etc/x")))
		if err != nil {
			return err
		}
		got, err := module.TakeOver(tx, now, n, b)
		if got != "x-2" {
			t.Errorf("taken over as %q", got)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatAMachineNamesIsNotReadableUntilAPersonNamesIt(t *testing.T) {
	m := newMesh(t, node("a"))
	doc := `{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":"/x","source":"` + blob + `"}]}`
	m.take("a", doc)
	if n, d := m.wanted("a"); len(n.Wanted.Sources) != 0 || len(d.Resources) != 1 {
		t.Errorf("the node may read %v of %+v", n.Wanted.Sources, d.Resources)
	}
	if c := m.must("x", doc, "node=a"); !c.Changed {
		t.Errorf("%+v", c)
	}
	if n, _ := m.wanted("a"); !reflect.DeepEqual(n.Wanted.Sources, []string{blob}) {
		t.Errorf("a person named it, and the node may read %v", n.Wanted.Sources)
	}
}
