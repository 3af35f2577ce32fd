package wire

import (
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/link"
)

func applied(n *wiretest.Node, generation uint64) link.Report {
	return link.Report{ID: wiretest.ID(), Source: "link", Mesh: n.Mesh, Epoch: 1, Generation: generation, Version: "1.0.0", Trigger: "declaration"}
}

func TestAConnectedNodeThatDoesNotApplyIsBehindAfterAMinute(t *testing.T) {
	p := newPlane(t)
	n := p.node("a")
	behind := func(want time.Time) {
		t.Helper()
		if got := p.BehindSince(p.record(n), 1); !got.Equal(want) {
			t.Errorf("behind since %s, want %s", got, want)
		}
	}
	none := time.Time{}
	p.clock.set(start.Add(time.Hour))
	behind(none) // nobody can expect it of one that is not connected
	s := p.open(n)
	p.await(s, link.MessageDeclaration)
	behind(none) // it has only just come
	p.clock.set(start.Add(time.Hour + ApplyTime))
	behind(start.Add(time.Hour))
	if _, a, err := n.Post(t.Context(), link.PathReports, applied(n, 1)); err != nil || a.Code != "" {
		t.Fatalf("%+v, %v", a, err)
	}
	behind(none)
	p.clock.set(start.Add(2 * time.Hour))
	p.declareAt(start.Add(2*time.Hour), "m", file("/etc/m", "x"), "every")
	behind(none)
	p.clock.set(start.Add(2*time.Hour + 3*time.Minute))
	behind(start.Add(2 * time.Hour)) // and not since the link stands
}

func TestANodeThatDoesNotApplyIsWrittenDownOnceADeclaration(t *testing.T) {
	p := newPlane(t, func(s *Server) { s.apply, s.heartbeat = time.Millisecond, time.Millisecond })
	n := p.node("a")
	s := p.open(n)
	p.await(s, link.MessageDeclaration)
	for p.count("node.behind") == 0 {
		if _, err := s.Next(); err != nil { // each heartbeat is a moment later
			t.Fatal(err)
		}
	}
	for range 20 {
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.count("node.behind"); got != 1 {
		t.Errorf("written down %d times", got)
	}
	if _, a, err := n.Post(t.Context(), link.PathReports, applied(n, 1)); err != nil || a.Code != "" {
		t.Fatalf("%+v, %v", a, err)
	}
	// One that has applied it is not.
	s.Close()
	again := p.open(n)
	defer again.Close()
	for range 20 {
		if _, err := again.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.count("node.behind"); got != 1 {
		t.Errorf("written down %d times", got)
	}
}

func TestAnAckIsNoSignOfLife(t *testing.T) {
	p := newPlane(t)
	n := p.node("a")
	if at := p.Seen.At(n.ID); !at.IsZero() {
		t.Errorf("seen at %s, and it never connected", at)
	}
	s := p.open(n)
	defer s.Close()
	p.await(s, link.MessageDeclaration)
	if at := p.Seen.At(n.ID); !at.Equal(start) {
		t.Errorf("seen at %s", at)
	}
}
