package wire

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

func TestWhatIsDeclaredReachesAnOpenLink(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t)
		n, other := p.node("a"), p.node("b")
		n.HTTP1, other.HTTP1 = http1, http1
		s, o := p.open(n), p.open(other)
		if m := p.await(s, link.MessageDeclaration); m.Declaration.Generation != 1 {
			t.Errorf("at connect: %+v", m.Declaration)
		}
		p.await(o, link.MessageDeclaration)
		p.declare("motd", file("/etc/motd", "one"), "node=a")
		m := p.await(s, link.MessageDeclaration).Declaration
		if m.Generation != 2 || !strings.Contains(string(m.Document), "/etc/motd") {
			t.Errorf("%+v: %s", m, m.Document)
		}
		p.declare("all", file("/etc/all", "x"), "every")
		if m := p.await(o, link.MessageDeclaration).Declaration; m.Generation != 2 || strings.Contains(string(m.Document), "/etc/motd") {
			t.Errorf("the other node: %+v: %s", m, m.Document)
		}
	})
}

func TestNewAddressesReachAnOpenLink(t *testing.T) {
	p := newPlane(t)
	s := p.open(p.node("a"))
	p.await(s, link.MessageDeclaration)
	err := p.office.Store.Update(func(tx *state.Tx) error {
		_, err := tx.AddAddress("mesh.example.com:7443")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Links.AllChanged()
	m, err := s.Next() // and not the declaration once more
	if err != nil || m.Type != link.MessageAddresses || len(m.Addresses) != 1 || m.Addresses[0] != "mesh.example.com:7443" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestALargeDeclarationComesByDigest(t *testing.T) {
	p := newPlane(t)
	n := p.node("a")
	p.declare("big", file("/etc/big", strings.Repeat("x", link.MaxInline)), "every")
	m := p.await(p.open(n), link.MessageDeclaration).Declaration
	if m.Document != nil || m.Size <= link.MaxInline {
		t.Fatalf("%d bytes, inline %d", m.Size, len(m.Document))
	}
	if status, doc := get(t, n, link.PathContent+m.Digest); status != http.StatusOK || m.Check([]byte(doc)) != nil {
		t.Errorf("status %d, %d bytes", status, len(doc))
	}
}

func TestTheNewestLinkWinsAndTheOldOnesEndChangesNothing(t *testing.T) {
	p := newPlane(t)
	n := p.node("a")
	old := p.open(n)
	p.await(old, link.MessageDeclaration)
	newer := p.open(n)
	p.await(newer, link.MessageDeclaration)
	for {
		if _, err := old.Next(); err != nil {
			break // the old one ends by itself
		}
	}
	old.Close()
	if !p.Links.Connected(n.ID) || p.Links.Count() != 1 {
		t.Errorf("connected %v, %d links", p.Links.Connected(n.ID), p.Links.Count())
	}
	p.declare("m", file("/etc/m", "x"), "every")
	if m := p.await(newer, link.MessageDeclaration); m.Declaration.Generation != 2 {
		t.Errorf("%+v", m.Declaration)
	}
}

func TestL09ALateLeaveTakesNothingAway(t *testing.T) {
	l := newLinks()
	old := l.take("n", start, nil, beginning{})
	newer := l.take("n", start, nil, beginning{})
	select {
	case <-old.end:
	default:
		t.Error("the old slot was not ended")
	}
	if l.leave(old) || !l.Connected("n") {
		t.Error("the old slot took the newer one away")
	}
	if !l.leave(newer) || l.Connected("n") {
		t.Error("the newer slot did not leave")
	}
}

func TestE17ARevokedNodeIsToldAndLetNowhere(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t)
		n, bystander := p.node("a"), p.node("b")
		n.HTTP1 = http1
		s, b := p.open(n), p.open(bystander)
		p.await(s, link.MessageDeclaration)
		p.await(b, link.MessageDeclaration)
		p.revoke(n)
		if m := p.await(s, link.MessageRevoked); m.Sentence == "" {
			t.Error("it is not told why")
		}
		if _, err := s.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("the link goes on: %v", err)
		}
		for _, path := range []string{link.PathReports, link.PathInventory, link.PathAck} {
			status, a, err := n.Post(t.Context(), path, struct{}{})
			if err != nil || status != http.StatusForbidden {
				t.Errorf("%s: %d, %v", path, status, err)
			}
			wantAnswer(t, a, link.NodeRevoked)
		}
		if _, err := n.Open(t.Context()); link.CodeOf(err) != link.NodeRevoked {
			t.Errorf("the link: %v", err)
		}
		// The others lose nothing.
		p.declare("m", file("/etc/m", "x"), "every")
		p.await(b, link.MessageDeclaration)
	})
}

func TestARevocationBetweenLookingAndTakingTheSlotIsSeen(t *testing.T) {
	p := newPlane(t)
	n := p.node("a")
	record := p.record(n)
	p.revoke(n) // no link is open: there was nobody to tell
	if _, err := p.news(record); link.CodeOf(err) != link.NodeRevoked {
		t.Errorf("%v", err)
	}
}

func TestWithoutACertificateNothingButEnrolment(t *testing.T) {
	p := newPlane(t)
	n, _ := p.host(p.token(admission.TokenOptions{}), "x")
	for _, r := range []struct{ method, path string }{
		{"POST", link.PathAck}, {"GET", link.PathLink}, {"POST", link.PathReports}, {"POST", link.PathInventory},
		{"GET", link.PathContent + "sha256:" + strings.Repeat("0", 64)},
	} {
		wantRefusal(t, n, r.method, r.path, http.StatusForbidden, link.Refused)
	}
}

func TestAnythingElseIsNotThere(t *testing.T) {
	p := newPlane(t)
	n := p.node("a")
	for _, r := range []struct{ method, path string }{
		{"GET", "/"}, {"GET", "/v1/nodes"}, {"POST", "/v1/token-create"}, {"GET", link.PathReports}, {"DELETE", link.PathLink},
		{"PUT", link.PathContent + "sha256:" + strings.Repeat("0", 64)}, {"GET", link.PathContent}, {"GET", link.PathContent + "a/b"},
	} {
		wantRefusal(t, n, r.method, r.path, http.StatusNotFound, link.Refused)
	}
}

func wantRefusal(t *testing.T, n *wiretest.Node, method, path string, status int, code link.Code) {
	t.Helper()
	c, err := n.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var a link.Answer
	got, err := c.JSON(t.Context(), method, path, []byte(`{}`), nil, &a)
	if err != nil || got != status || a.Code != code || a.Sentence == "" {
		t.Errorf("%s %s: %d %+v, %v", method, path, got, a, err)
	}
}

func TestANodeReadsItsOwnContentOnly(t *testing.T) {
	p := newPlane(t)
	a, b := p.node("a"), p.node("b")
	mine, others := put(t, p.content, "mine"), put(t, p.content, "another's")
	source := func(path, d string) string {
		return `{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":"` + path + `","source":"` + d + `"}]}`
	}
	p.declare("ma", source("/a", mine.String()), "node=a")
	p.declare("mb", source("/b", others.String()), "node=b")
	if status, got := get(t, a, link.PathContent+mine.String()); status != http.StatusOK || got != "mine" {
		t.Errorf("its own: %d %q", status, got)
	}
	if status, got, err := a.Get(t.Context(), link.PathContent+mine.String(), map[string]string{"Range": "bytes=1-2"}); err != nil || status != http.StatusPartialContent || string(got) != "in" {
		t.Errorf("a range: %d %q, %v", status, got, err)
	}
	absent := "sha256:" + strings.Repeat("0", 64)
	_, toldOfOthers := get(t, a, link.PathContent+others.String())
	_, toldOfAbsent := get(t, a, link.PathContent+absent)
	if strings.ReplaceAll(toldOfOthers, others.String(), "D") != strings.ReplaceAll(toldOfAbsent, absent, "D") {
		t.Errorf("what is there is told from what is not:\n%s\n%s", toldOfOthers, toldOfAbsent)
	}
	for name, d := range map[string]string{
		"another's content": others.String(), "another's declaration": p.record(b).Wanted.Digest, "what is not there": absent,
		"not a digest": "x", "another algorithm": "sha512:" + strings.Repeat("0", 128), "a path": "..%2f..%2fstate.db",
	} {
		if status, got := get(t, a, link.PathContent+d); status != http.StatusForbidden || strings.Contains(got, "another's") {
			t.Errorf("%s: %d %q", name, status, got)
		}
	}
}

func TestAMachineCannotReadContentByNamingIt(t *testing.T) {
	p := newPlane(t)
	d := put(t, p.content, "somebody else's")
	k := p.token(admission.TokenOptions{})
	n, req := p.host(k, "evil")
	req.Declaration = []byte(`{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":"/x","source":"` + d.String() + `"}]}`)
	if a, err := n.Enrol(t.Context(), k, req); err != nil || a.Code != "" {
		t.Fatalf("%+v, %v", a, err)
	}
	if status, got := get(t, n, link.PathContent+d.String()); status != http.StatusForbidden {
		t.Errorf("%d %q", status, got)
	}
}

func TestAReportIsItsSendersWhateverItSays(t *testing.T) {
	p := newPlane(t)
	a, b := p.node("a"), p.node("b")
	rep := link.Report{
		ID: wiretest.ID(), Source: "link", Mesh: a.Mesh, Epoch: 1, Generation: 1, Version: "1.0.0",
		Resources: []link.ResourceReport{{Key: "file:/x", ID: "x", Outcome: declaration.Failed, Error: "no"}, {Key: "file:/y", Outcome: declaration.Applied}},
	}
	for range 2 { // posting one twice is the same as once
		if status, answer, err := a.Post(t.Context(), link.PathReports, rep); err != nil || status != http.StatusOK {
			t.Fatalf("%d %+v, %v", status, answer, err)
		}
	}
	if n := p.record(a); n.Applied.Generation != 1 || n.Applied.Failed != 1 || n.Applied.Version != "1.0.0" {
		t.Errorf("%+v", n.Applied)
	}
	if n := p.record(b); n.Applied.Version != "" {
		t.Errorf("it landed on another node: %+v", n.Applied)
	}
	for name, change := range map[string]func(*link.Report){
		"a generation it never had": func(r *link.Report) { r.Generation = 99 },
		"another mesh":              func(r *link.Report) { r.Mesh, r.Generation = "other", 1 },
		"an epoch to come":          func(r *link.Report) { r.Epoch = 7 },
		"its own file":              func(r *link.Report) { r.Source, r.Generation = "file", 5 },
	} {
		claim := rep
		claim.ID, claim.Resources = wiretest.ID(), nil
		change(&claim)
		if status, _, err := a.Post(t.Context(), link.PathReports, claim); err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d, %v", name, status, err)
		}
		if n := p.record(a); n.Applied.Generation != 1 || n.Applied.Epoch != 1 || n.Applied.Failed != 1 {
			t.Errorf("%s: %+v", name, n.Applied)
		}
	}
	rep.ID = "short"
	_, answer, err := a.Post(t.Context(), link.PathReports, rep)
	if err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, answer, link.Refused)
	if status, _, err := a.Post(t.Context(), link.PathInventory, profile.Inventory{Version: "2"}); err != nil || status != http.StatusOK {
		t.Errorf("inventory: %d, %v", status, err)
	}
}

func TestAckOfAnothersEnrolmentIsRefused(t *testing.T) {
	p := newPlane(t)
	a, b := p.node("a"), p.node("b")
	_, answer, err := a.Post(t.Context(), link.PathAck, link.AckRequest{EnrolmentID: b.Enrolment})
	if err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, answer, link.EnrolmentConflict)
}

func TestHeartbeats(t *testing.T) {
	p := newPlane(t, func(s *Server) { s.heartbeat = 5 * time.Millisecond })
	s := p.open(p.node("a"))
	for range 3 {
		p.await(s, link.MessageHeartbeat)
	}
}

func TestALinkOnWhichLittleIsSaidStays(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t, func(s *Server) { s.write, s.heartbeat = 20*time.Millisecond, 100*time.Millisecond })
		n := p.node("a")
		n.HTTP1 = http1
		s := p.open(n)
		for range 4 { // the first comes at once
			p.await(s, link.MessageHeartbeat)
		}
	})
}

func TestAtTheEndEveryNodeIsToldWhenToComeBack(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t)
		n := p.node("a")
		n.HTTP1 = http1
		s := p.open(n)
		p.await(s, link.MessageDeclaration)
		ended := make(chan error, 1)
		go func() { ended <- p.stop() }()
		if m := p.await(s, link.MessageDrain); m.WindowSeconds < 1 {
			t.Errorf("%+v", m)
		}
		s.Close()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		if !strings.Contains(p.log.String(), "link is down") {
			t.Errorf("log: %s", p.log)
		}
	})
}

func TestL04APeerThatStopsReadingIsClosed(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t, func(s *Server) { s.write = 200 * time.Millisecond; s.heartbeat = time.Millisecond })
		n := p.node("a")
		n.HTTP1 = http1
		p.open(n)
		// It reads nothing of what comes; its buffers fill up with declarations.
		deadline := time.Now().Add(20 * time.Second)
		big := strings.Repeat("x", 40<<10)
		for i := 0; p.Links.Connected(n.ID); i++ {
			if time.Now().After(deadline) {
				t.Fatal("the link is still open")
			}
			p.declare("m", file("/etc/m", big+strings.Repeat("y", i%7)), "every")
		}
	})
}
