package wire

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

func (p *plane) retire(n *wiretest.Node, letGo bool) {
	p.t.Helper()
	err := p.office.Store.Update(func(tx *state.Tx) error {
		_, _, err := p.office.Retire(tx, n.ID, letGo)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Links.Changed(n.ID)
}

func TestARetiredNodeIsSentALastDeclarationAndLeaves(t *testing.T) {
	for _, letGo := range []bool{false, true} {
		p := newPlane(t)
		p.declare("m", file("/etc/m", "x"), "every")
		n, bystander := p.node("a"), p.node("b")
		s, b := p.open(n), p.open(bystander)
		first := p.await(s, link.MessageDeclaration).Declaration
		p.await(b, link.MessageDeclaration)
		if first.Final {
			t.Fatal("the first is the last")
		}
		p.retire(n, letGo)
		last := p.await(s, link.MessageDeclaration).Declaration
		d, err := declaration.Parse(last.Document)
		if err != nil || !last.Final || last.Leave != letGo || len(d.Resources) != 0 || last.Generation != first.Generation+1 {
			t.Fatalf("%+v, %v", last, err)
		}
		// What is declared now is not for it.
		p.declare("n", file("/etc/n", "x"), "every")
		p.await(b, link.MessageDeclaration)
		if got := p.record(n).Wanted.Generation; got != last.Generation {
			t.Errorf("generation %d after a declaration for every node", got)
		}
		for range 2 { // said again, when the answer was lost: it is told that it is gone
			status, a, err := n.Post(t.Context(), link.PathLeave, link.LeaveRequest{})
			if err != nil || status != http.StatusOK && a.Code != link.NodeRevoked {
				t.Errorf("it leaves: %d, %+v, %v", status, a, err)
			}
		}
		if got := p.record(n); got.State != state.Retired || p.count("node.retired") != 1 {
			t.Errorf("it is %s, %d events", got.State, p.count("node.retired"))
		}
		if _, err := n.Open(t.Context()); link.CodeOf(err) != link.NodeRevoked {
			t.Errorf("it may still connect: %v", err)
		}
		if !p.Links.Connected(bystander.ID) || p.Links.Count() != 1 {
			t.Errorf("%d links", p.Links.Count())
		}
	}
}

// unowned asks as the node.
func unowned(t *testing.T, n *wiretest.Node) (keys, declared []string) {
	t.Helper()
	status, b := get(t, n, link.PathUnowned)
	var a link.UnownedAnswer
	if err := json.Unmarshal([]byte(b), &a); err != nil || status != http.StatusOK {
		t.Fatalf("%d, %v", status, err)
	}
	for _, doc := range a.Declarations {
		d, err := declaration.Parse(doc)
		if err != nil || len(d.Resources) != 1 {
			t.Fatalf("%s: %v", doc, err)
		}
		declared = append(declared, d.Resources[0].Key())
	}
	return a.Keys, declared
}

func (p *plane) tells(n *wiretest.Node, path string, v any) {
	p.t.Helper()
	if status, a, err := n.Post(p.t.Context(), path, v); err != nil || status != http.StatusOK {
		p.t.Fatalf("%s: %d, %+v, %v", path, status, a, err)
	}
}

func TestWhatANodeOwnedIsRememberedUntilItSaysThatItWent(t *testing.T) {
	p := newPlane(t)
	p.declare("a", file("/etc/a", "x"), "every")
	p.declare("b", file("/etc/b", "x"), "every")
	p.declare("c", file("/etc/c", "x"), "every")
	n, other := p.node("n"), p.node("other")
	p.tells(n, link.PathInventory, profile.Inventory{Owned: []string{"file:/etc/a", "file:/etc/b", "file:/etc/c"}})
	for _, name := range []string{"a", "b"} {
		p.undeclare(name)
	}
	if _, declared := unowned(t, n); !slices.Equal(declared, []string{"file:/etc/a", "file:/etc/b"}) {
		t.Errorf("declared once: %v", declared)
	}
	p.tells(n, link.PathReports, link.Report{ID: wiretest.ID(), Source: "link", Resources: []link.ResourceReport{
		{Key: "file:/etc/b", Outcome: declaration.Removed}, {Key: "file:/etc/a", Outcome: declaration.Failed}}})
	// It lost its store, and owns nothing.
	p.tells(n, link.PathInventory, profile.Inventory{})
	keys, declared := unowned(t, n)
	if !slices.Equal(keys, []string{"file:/etc/a", "file:/etc/c"}) || !slices.Equal(declared, []string{"file:/etc/a"}) {
		t.Errorf("owned once %v, declared once %v", keys, declared)
	}
	// What it owns again, or is to have again, is not lost.
	p.tells(n, link.PathInventory, profile.Inventory{Owned: []string{"file:/etc/c"}})
	p.declare("a", file("/etc/a", "x"), "every")
	// What it owns is among the keys: it is for the node to say what it knows of.
	if keys, declared := unowned(t, n); !slices.Equal(keys, []string{"file:/etc/a", "file:/etc/c"}) || len(declared) != 0 {
		t.Errorf("owned once %v, declared once %v", keys, declared)
	}
	if keys, declared := unowned(t, other); len(keys) != 0 || len(declared) != 1 {
		t.Errorf("the other: owned once %v, declared once %v", keys, declared)
	}
}

func (p *plane) undeclare(name string) {
	p.t.Helper()
	err := p.office.Store.Update(func(tx *state.Tx) error {
		_, err := module.Undeclare(tx, start, name)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func TestAMachineThatComesBackIsTheNodeItWas(t *testing.T) {
	p := newPlane(t)
	p.declare("m", file("/etc/m", "x"), "every")
	old := p.node("web")
	s := p.session(old)
	p.tells(old, link.PathInventory, profile.Inventory{Owned: []string{"file:/etc/m"}})
	k := p.token(admission.TokenOptions{Rejoin: "web"})
	n, req := p.host(k, "reinstalled")
	for range 2 { // the answer was lost once
		a, err := n.Enrol(t.Context(), k, req)
		if err != nil || a.NodeID != old.ID || a.Name != "web" {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if a, err := n.Ack(t.Context()); err != nil || a.Code != "" {
		t.Fatalf("%+v, %v", a, err)
	}
	p.await(s, link.MessageRevoked) // who has the old key is told
	if _, err := old.Open(t.Context()); link.CodeOf(err) != link.NodeRevoked {
		t.Errorf("the old key: %v", err)
	}
	d := p.await(p.session(n), link.MessageDeclaration).Declaration
	if d.Generation != 1 || p.hold(n) != "" {
		t.Errorf("it is sent %+v, held as %q", d, p.hold(n))
	}
	if keys, _ := unowned(t, n); !slices.Equal(keys, []string{"file:/etc/m"}) {
		t.Errorf("it owned %v", keys)
	}
	second, req := p.host(k, "another")
	if a, err := second.Enrol(t.Context(), k, req); err != nil || a.Code != link.TokenUsed {
		t.Errorf("a second machine: %+v, %v", a, err)
	}
}

func TestAPendingMachineIsApprovedAsTheNodeItWas(t *testing.T) {
	p := newPlane(t)
	old := p.node("web")
	p.revoke(old)
	k := p.token(admission.TokenOptions{Pending: true})
	n, req := p.host(k, "reinstalled")
	if a, err := n.Enrol(t.Context(), k, req); err != nil || a.Code != link.Pending {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := p.office.Approve("reinstalled", "", nil, "web"); err != nil {
		t.Fatal(err)
	}
	if a, err := n.Enrol(t.Context(), k, req); err != nil || a.NodeID != old.ID || a.Name != "web" {
		t.Fatalf("%+v, %v", a, err)
	}
	nodes := 0
	err := p.office.Store.View(func(tx *state.Tx) error {
		ns, err := tx.Nodes()
		nodes = len(ns)
		return err
	})
	if err != nil || nodes != 1 {
		t.Errorf("%d nodes, %v", nodes, err)
	}
}

func TestAMachineThatWasTurnedDownComesBackAsTheNodeItWas(t *testing.T) {
	for _, how := range []string{"pending", "refused by a rule", "refused by a person"} {
		p := newPlane(t)
		old := p.node("web")
		rules := admission.Policy{{Decision: admission.Refuse, Hostname: "new"}}
		if how == "refused by a rule" {
			p.office.Policy = rules
		}
		first := p.token(admission.TokenOptions{Pending: how != "refused by a rule"})
		n, req := p.host(first, "new")
		if a, err := n.Enrol(t.Context(), first, req); err != nil || a.Code == "" {
			t.Fatalf("%s: %+v, %v", how, a, err)
		}
		if how == "refused by a person" {
			if _, _, err := p.office.Refuse("new", "no"); err != nil {
				t.Fatal(err)
			}
		}
		k := p.token(admission.TokenOptions{Rejoin: "web"})
		a, err := n.Enrol(t.Context(), k, req)
		if how == "refused by a rule" { // which is stricter than any token
			if err != nil || a.Code != link.Refused {
				t.Errorf("%s: %+v, %v", how, a, err)
			}
			p.office.Policy = nil
			a, err = n.Enrol(t.Context(), k, req)
		}
		if err != nil || a.NodeID != old.ID || a.Name != "web" {
			t.Errorf("%s: %+v, %v", how, a, err)
		}
		for _, s := range p.tokens() {
			if want := s.Rejoin == ""; (s.Left > 0) != want {
				t.Errorf("%s: token to come back %v has %d places", how, s.Rejoin != "", s.Left)
			}
		}
	}
	// A rule that refuses a machine refuses it with such a token, too, and costs the node
	// nothing.
	p := newPlane(t)
	old := p.node("web")
	p.office.Policy = admission.Policy{{Decision: admission.Refuse}}
	k := p.token(admission.TokenOptions{Rejoin: "web"})
	n, req := p.host(k, "new")
	if a, err := n.Enrol(t.Context(), k, req); err != nil || a.Code != link.Refused || p.record(old).State != state.Enrolled {
		t.Errorf("%+v, %v; the node is %s", a, err, p.record(old).State)
	}
	if _, err := old.Open(t.Context()); err != nil {
		t.Errorf("the node itself: %v", err)
	}
}

func (p *plane) tokens() []admission.TokenStatus {
	p.t.Helper()
	ts, err := p.office.Tokens()
	if err != nil {
		p.t.Fatal(err)
	}
	// Not that of the node itself.
	return slices.DeleteFunc(ts, func(s admission.TokenStatus) bool { return !s.Pending && s.Rejoin == "" })
}

func TestANodeThatIsToLeaveComesBackByNoTokenOfBefore(t *testing.T) {
	for how, end := range map[string]func(*plane, *wiretest.Node){
		"revoked": (*plane).revoke,
		"retired": func(p *plane, n *wiretest.Node) { p.retire(n, false) },
	} {
		p := newPlane(t)
		old := p.node("web")
		k := p.token(admission.TokenOptions{Rejoin: "web"})
		end(p, old)
		n, req := p.host(k, "thief")
		if a, err := n.Enrol(t.Context(), k, req); err != nil || a.Code != link.TokenRevoked {
			t.Errorf("%s: %+v, %v", how, a, err)
		}
	}
}

func TestANodeThatIsAheadAndAwayIsRetired(t *testing.T) {
	p := newPlane(t)
	m := p.node("a")
	p.retire(m, false)
	m.Opening.Have = &link.Position{Epoch: 3, Generation: 50, Digest: "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"}
	s := p.session(m)
	if d := p.await(s, link.MessageDeclaration).Declaration; !d.Final || p.hold(m) != "" {
		t.Errorf("it is sent %+v, held as %q", d, p.hold(m))
	}
}

func TestARetiringNodeThatIsFoundClonedIsReleased(t *testing.T) {
	p := newPlane(t)
	m := p.node("a")
	p.once(m)
	copied := snapshot(m)
	p.retire(m, false)
	s := p.session(m)
	p.answering(m, s)
	if _, err := copied.Open(t.Context()); link.CodeOf(err) != link.NodeCloned {
		t.Fatal(err)
	}
	s.Close()
	p.apart(m)
	p.approve("a")
	if d := p.await(p.session(m), link.MessageDeclaration).Declaration; !d.Final || p.record(m).State != state.Retiring {
		t.Errorf("it is sent %+v and is %s", d, p.record(m).State)
	}
}

func TestATokenToComeBackIsGoodWhenTheRuleIsGone(t *testing.T) {
	for _, verdict := range []admission.Verdict{admission.Refuse, admission.Wait} {
		p := newPlane(t)
		old := p.node("web")
		p.office.Policy = admission.Policy{{Decision: verdict}}
		k := p.token(admission.TokenOptions{Rejoin: "web"})
		n, req := p.host(k, "new")
		want := map[admission.Verdict]link.Code{admission.Refuse: link.Refused, admission.Wait: link.Pending}[verdict]
		if a, err := n.Enrol(t.Context(), k, req); err != nil || a.Code != want {
			t.Errorf("%s: %+v, %v", verdict, a, err)
		}
		p.office.Policy = nil
		if a, err := n.Enrol(t.Context(), k, req); err != nil || a.NodeID != old.ID || a.Name != "web" {
			t.Errorf("%s, and gone: %+v, %v", verdict, a, err)
		}
		for _, s := range p.tokens() {
			if s.Left != 0 || len(s.Holders) != 1 {
				t.Errorf("%s: %d places are left, %d hold one", verdict, s.Left, len(s.Holders))
			}
		}
	}
}

func TestOnlyAPendingMachineIsApprovedAsAnother(t *testing.T) {
	p := newPlane(t)
	p.node("web")
	m := p.node("a")
	s := p.session(m)
	m.Opening.Have = &link.Position{Epoch: 3, Generation: 1, Digest: "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"}
	s.Close()
	p.apart(m)
	p.session(m)
	if _, err := p.office.Approve("a", "", nil, "web"); err == nil || p.hold(m) != state.Ahead {
		t.Errorf("%v, held as %q", err, p.hold(m))
	}
}
