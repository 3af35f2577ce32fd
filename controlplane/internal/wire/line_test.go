package wire

import (
	"net/http"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/link"
)

func TestWhereANodeStandsOnItsLine(t *testing.T) {
	const a, b, c, d = "1-000000000000000a", "2-000000000000000b", "4-000000000000000c", "5-000000000000000d"
	const left = "3-00000000000000ee"
	line := &state.Line{Epoch: 1, Values: []link.SessionValue{d, c, b}, Left: []link.SessionValue{left}}
	for name, x := range map[string]struct {
		line  *state.Line
		epoch uint64
		said  []link.SessionValue
		want  place
	}{
		"it never had a session":                   {nil, 1, nil, place{at: -1}},
		"it had one that nobody here kept":         {&state.Line{}, 1, []link.SessionValue{a}, place{at: -1}},
		"it says the newest":                       {line, 1, []link.SessionValue{d, c}, place{}},
		"that of its last session is not known":    {line, 1, []link.SessionValue{"6-0000000000000001", d}, place{}},
		"it says an older one":                     {line, 1, []link.SessionValue{c, b}, place{at: 1, doubt: true}},
		"it says one that was never known, then c": {line, 1, []link.SessionValue{"5-0000000000000002", c}, place{at: 1, doubt: true}},
		"it says one from before all that is kept": {line, 1, []link.SessionValue{a}, place{at: 3, doubt: true}},
		"it says none":                             {line, 1, nil, place{at: 3, doubt: true}},
		"it says one that the line left":           {line, 1, []link.SessionValue{left}, place{foreign: true}},
		"it says one that never was":               {line, 1, []link.SessionValue{"5-0000000000000003"}, place{foreign: true}},
		"the disk of the control plane went back":  {line, 1, []link.SessionValue{"9-0000000000000004", "8-0000000000000005"}, place{doubt: true}},
		"it says more than there can be":           {line, 1, []link.SessionValue{"9999999999-0000000000000007"}, place{foreign: true}},
		"the control plane was restored":           {line, 2, []link.SessionValue{"9-0000000000000006"}, place{at: -1}},
	} {
		got := find(x.line, x.epoch, x.said)
		if got.note = ""; got != x.want {
			t.Errorf("%s: %+v, want %+v", name, got, x.want)
		}
	}
}

// session opens the link of a machine, and keeps its value as a host does.
func (p *plane) session(m *wiretest.Node) *wiretest.Session {
	p.t.Helper()
	s := p.open(m)
	first, err := s.Next()
	if err != nil || !first.Session.Valid() {
		p.t.Fatalf("the first message is %+v, %v", first, err)
	}
	p.keep(m, first.Session)
	m.Opening.Sessions = append([]link.SessionValue{first.Session}, m.Opening.Sessions...)
	m.Opening.Sessions = m.Opening.Sessions[:min(2, len(m.Opening.Sessions))]
	return s
}

func (p *plane) keep(m *wiretest.Node, v link.SessionValue) {
	p.t.Helper()
	status, a, err := m.Post(p.t.Context(), link.PathSession, link.SessionRequest{Session: v})
	if err != nil || status != http.StatusOK {
		p.t.Fatalf("the session is not kept: %d, %+v, %v", status, a, err)
	}
}

// answering answers each question whether the machine is there, until its link ends.
func (p *plane) answering(m *wiretest.Node, s *wiretest.Session) {
	v := m.Opening.Sessions[0]
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			msg, err := s.Next()
			if err != nil {
				return
			}
			if msg.Type == link.MessageConfirm {
				_, _, _ = m.Post(p.t.Context(), link.PathSession, link.SessionRequest{Session: v})
			}
		}
	}()
	p.t.Cleanup(func() { s.Close(); <-done })
}

// snapshot is the machine as it is now, on another disk.
func snapshot(m *wiretest.Node) *wiretest.Node { c := *m; return &c }

func (p *plane) hold(m *wiretest.Node) state.HoldKind {
	p.t.Helper()
	if h := p.record(m).Hold; h != nil {
		return h.Kind
	}
	return ""
}

func TestE16ACopyIsFoundAtItsFirstContact(t *testing.T) {
	p := newPlane(t)
	m := p.node("a")
	p.session(m).Close()
	copied := snapshot(m)
	s := p.session(m)
	p.answering(m, s)
	if _, err := copied.Open(t.Context()); link.CodeOf(err) != link.NodeCloned {
		t.Fatalf("the copy may connect: %v", err)
	}
	if got := p.hold(m); got != state.Cloned || p.count("node.held") != 1 {
		t.Fatalf("held as %q, %d events", got, p.count("node.held"))
	}
	if _, err := copied.Open(t.Context()); link.CodeOf(err) != link.NodeCloned || p.count("node.held") != 1 {
		t.Errorf("again: %v, %d events", err, p.count("node.held"))
	}
}

func TestE16NeitherOfTwoIsSentAnythingNewUntilAPersonSaysSo(t *testing.T) {
	p := newPlane(t)
	m := p.node("a")
	p.session(m).Close()
	copied := snapshot(m)
	s := p.session(m)
	p.answering(m, s)
	if _, err := copied.Open(t.Context()); link.CodeOf(err) != link.NodeCloned {
		t.Fatal(err)
	}
	before := p.record(m).Wanted.Generation
	p.declare("m", file("/etc/m", "x"), "every")
	if got := p.record(m).Wanted.Generation; got != before+1 {
		t.Fatalf("what it is to have is not kept: generation %d", got)
	}
	// The one that is there comes anew, and is sent nothing.
	s.Close()
	s = p.session(m)
	if got := p.news1(m); got.declaration.Generation != 0 {
		t.Errorf("it would be sent %+v", got.declaration)
	}
	if _, err := p.office.Approve("a", "", nil, ""); err != nil {
		t.Fatal(err)
	}
	p.Links.Changed(m.ID)
	if d := p.await(s, link.MessageDeclaration).Declaration; d.Generation != before+1 {
		t.Errorf("released, it is sent %+v", d)
	}
	if p.hold(m) != "" {
		t.Error("it is held after it was released")
	}
}

// news1 is what a node would be told now.
func (p *plane) news1(m *wiretest.Node) news {
	p.t.Helper()
	n, err := p.news(p.record(m))
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func TestE16AMachineThatWentBackIsNoCopy(t *testing.T) {
	p := newPlane(t)
	m := p.node("a")
	p.session(m).Close()
	old := snapshot(m)
	for range 3 {
		p.session(m).Close()
	}
	p.declare("m", file("/etc/m", "x"), "every")
	s := p.session(old) // the snapshot takes its place
	p.await(s, link.MessageDeclaration)
	if p.hold(m) != "" || p.count("node.back") != 1 {
		t.Fatalf("held as %q, %d events that it went back", p.hold(m), p.count("node.back"))
	}
	// It goes on as itself; but the one that it went back behind is a copy now.
	s.Close()
	s = p.session(old)
	p.answering(old, s)
	if _, err := m.Open(t.Context()); link.CodeOf(err) != link.NodeCloned || p.hold(m) != state.Cloned {
		t.Errorf("the other one: %v, held as %q", err, p.hold(m))
	}
}

func TestE16ALinkWhoseMachineIsGoneMakesNoCopy(t *testing.T) {
	p := newPlane(t, func(s *Server) { s.confirm = 50 * time.Millisecond })
	m := p.node("a")
	p.session(m).Close()
	old := snapshot(m)
	p.session(m) // its machine ended, and nobody noticed yet: it answers nothing
	p.session(old)
	if p.hold(m) != "" || p.Links.Count() != 1 {
		t.Errorf("held as %q, %d links", p.hold(m), p.Links.Count())
	}
}

func TestAValueThatTheNodeDidNotKeepCostsNothing(t *testing.T) {
	p := newPlane(t)
	m := p.node("a")
	p.session(m).Close()
	for range 3 {
		p.open(m).Close() // given one, and killed before it kept it
	}
	p.session(m).Close()
	s := p.open(m)
	first, err := s.Next()
	if err != nil {
		t.Fatal(err)
	}
	// Kept, and killed before the control plane heard of it.
	s.Close()
	m.Opening.Sessions = []link.SessionValue{first.Session, m.Opening.Sessions[0]}
	p.session(m)
	if p.hold(m) != "" || p.count("node.back") != 0 {
		t.Errorf("held as %q, %d events", p.hold(m), p.count("node.back"))
	}
}

func TestTheValueOfAnotherSessionIsNotKept(t *testing.T) {
	p := newPlane(t)
	m := p.node("a")
	p.session(m)
	for _, v := range []link.SessionValue{"", "x", "7-0000000000000001"} {
		if status, a, err := m.Post(t.Context(), link.PathSession, link.SessionRequest{Session: v}); err != nil || status != http.StatusForbidden {
			t.Errorf("%q: %d, %+v, %v", v, status, a, err)
		}
	}
}

// restored raises the epoch, as a restore does.
func (p *plane) restored() {
	p.t.Helper()
	err := p.office.Store.Update(func(tx *state.Tx) error {
		m, err := tx.Mesh()
		if err != nil {
			return err
		}
		m.Epoch++
		return tx.PutMesh(m)
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func TestANodeThatIsAheadOfARestoredControlPlaneIsHeld(t *testing.T) {
	p := newPlane(t)
	p.declare("m", file("/etc/m", "x"), "every")
	m, level, late := p.node("ahead"), p.node("level"), p.node("late")
	have := func(n *wiretest.Node, generation uint64, digest string) {
		n.Opening.Have = &link.Position{Epoch: 1, Generation: generation, Digest: digest}
	}
	const other = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	w := p.record(m).Wanted
	have(m, w.Generation+1, other) // declared after the backup
	have(level, w.Generation, p.record(level).Wanted.Digest)
	have(late, w.Generation-1, other) // it was away when the backup was made
	p.restored()
	for _, n := range []*wiretest.Node{level, late} {
		if d := p.await(p.session(n), link.MessageDeclaration).Declaration; d.Epoch != 2 || p.hold(n) != "" {
			t.Errorf("%s is sent %+v, held as %q", n.Name, d, p.hold(n))
		}
	}
	p.session(m)
	if p.hold(m) != state.Ahead || p.news1(m).declaration.Generation != 0 {
		t.Errorf("held as %q, would be sent %+v", p.hold(m), p.news1(m).declaration)
	}
	// What is declared afterwards is on the older one, and no reason to send that.
	p.declare("n", file("/etc/n", "x"), "every")
	fresh := p.node("fresh")
	have(fresh, 9, other)
	p.session(fresh)
	if p.news1(m).declaration.Generation != 0 || p.hold(fresh) != state.Ahead {
		t.Errorf("after a declaration: %+v; fresh held as %q", p.news1(m).declaration, p.hold(fresh))
	}
}
