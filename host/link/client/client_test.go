package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A machine is a handler and an outbox that say what happened to them.
type machine struct {
	events       chan string
	declarations chan link.DeclarationMessage
	refuse       error

	mu      sync.Mutex
	waiting []link.Report
	notify  chan struct{}
	version string
}

func newMachine() *machine {
	return &machine{events: make(chan string, 64), declarations: make(chan link.DeclarationMessage, 16), notify: make(chan struct{}, 1), version: "1.0.0"}
}

func (m *machine) Declaration(_ context.Context, d link.DeclarationMessage) error {
	m.declarations <- d
	return m.refuse
}
func (m *machine) LinkUp()                 { m.events <- "up" }
func (m *machine) LinkDown(err error)      { m.events <- "down: " + err.Error() }
func (m *machine) Revoked(sentence string) { m.events <- "revoked: " + sentence }

func (m *machine) Pending() ([]link.Report, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]link.Report(nil), m.waiting...), nil
}

func (m *machine) Sent(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, r := range m.waiting {
		if r.ID == id {
			m.waiting = append(m.waiting[:i:i], m.waiting[i+1:]...)
			break
		}
	}
	if len(m.waiting) == 0 {
		m.events <- "all sent"
	}
	return nil
}

func (m *machine) Notify() <-chan struct{} { return m.notify }

func (m *machine) add(ids ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		m.waiting = append(m.waiting, link.Report{ID: id})
	}
	select {
	case m.notify <- struct{}{}:
	default:
	}
}

// next waits for one thing on a channel.
func next[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

func (m *machine) expect(t testing.TB, prefix string) {
	t.Helper()
	if e := next(t, m.events, prefix); !strings.HasPrefix(e, prefix) {
		t.Fatalf("got %q, want %q", e, prefix)
	}
}

// running enrols with p and holds the link.
func running(t testing.TB, p *plane, m *machine, tune ...func(*Config)) (*Client, string) {
	t.Helper()
	cfg := config(t, p.token())
	enrolled(t, p, cfg)
	for len(p.posted) > 0 {
		<-p.posted
	}
	return run(t, cfg.Path, m, tune...), cfg.Path
}

func run(t testing.TB, path string, m *machine, tune ...func(*Config)) *Client {
	c := Config{
		Path: path, Handler: m, Outbox: m, MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, Heartbeat: time.Minute,
		Inventory: func() profile.Inventory {
			m.mu.Lock()
			defer m.mu.Unlock()
			return profile.Inventory{Version: m.version}
		},
	}
	for _, f := range tune {
		f(&c)
	}
	client := New(c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- client.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := next(t, ended, "the end of Run"); err != nil {
			t.Error("Run:", err)
		}
	})
	return client
}

func inline(doc string) *link.DeclarationMessage {
	return &link.DeclarationMessage{Mesh: "m1", Epoch: 3, Generation: 7, Digest: digest.FromString(doc).String(), Size: int64(len(doc)), Document: []byte(doc)}
}

func TestDeclarationIsDelivered(t *testing.T) {
	for name, options := range map[string][]planeOption{"HTTP/2": nil, "HTTP/1.1": {http1}, "in 1970": {inYear(1970)}} {
		t.Run(name, func(t *testing.T) {
			p, m := newPlane(t, options...), newMachine()
			client, _ := running(t, p, m)
			s := next(t, p.streams, "the link")
			m.expect(t, "up")
			if st := client.State(); !st.Connected || st.Address != p.address() || st.Since.IsZero() {
				t.Errorf("state %+v", st)
			}
			s.send(t, link.Message{Type: link.MessageHeartbeat})
			s.send(t, link.Message{Type: "of a later version"})
			s.send(t, link.Message{Type: link.MessageDeclaration, Declaration: inline(`{"a":1}`)})
			d := next(t, m.declarations, "the declaration")
			if string(d.Document) != `{"a":1}` || d.Epoch != 3 || d.Generation != 7 || d.Mesh != "m1" {
				t.Errorf("got %+v", d)
			}

			long := strings.Repeat("long ", link.MaxInline)
			p.set(func() { p.content[digest.FromString(long).String()] = []byte(long) })
			byDigest := inline(long)
			byDigest.Document = nil
			s.send(t, link.Message{Type: link.MessageDeclaration, Declaration: byDigest})
			if d := next(t, m.declarations, "the long declaration"); string(d.Document) != long {
				t.Errorf("got %d bytes", len(d.Document))
			}
		})
	}
}

func TestRefusedDeclarationDoesNotCostTheLink(t *testing.T) {
	p, m := newPlane(t), newMachine()
	m.refuse = errors.New("older than the one in force")
	running(t, p, m)
	s := next(t, p.streams, "the link")
	for range 2 {
		s.send(t, link.Message{Type: link.MessageDeclaration, Declaration: inline("{}")})
		next(t, m.declarations, "the declaration")
	}
}

func TestDeclarationThatIsNotWhatItSaysIsNeverDelivered(t *testing.T) {
	wrongDigest, otherMesh, missing, wrongContent := inline("{}"), inline("{}"), inline("{ }"), inline("{  }")
	wrongDigest.Document = []byte("[]")
	otherMesh.Mesh = "m2"
	missing.Document, wrongContent.Document = nil, nil
	for name, d := range map[string]*link.DeclarationMessage{"digest": wrongDigest, "mesh": otherMesh, "missing": missing, "content": wrongContent} {
		t.Run(name, func(t *testing.T) {
			p, m := newPlane(t), newMachine()
			p.set(func() { p.content[wrongContent.Digest] = []byte("[  ]") })
			running(t, p, m)
			s := next(t, p.streams, "the link")
			m.expect(t, "up")
			s.send(t, link.Message{Type: link.MessageDeclaration, Declaration: d})
			m.expect(t, "down: cannot")
			if len(m.declarations) != 0 {
				t.Error("it was delivered")
			}
		})
	}
}

func TestSilenceEndsTheSessionAndTheNextOneStands(t *testing.T) {
	for name, options := range map[string][]planeOption{"HTTP/2": nil, "HTTP/1.1": {http1}} {
		t.Run(name, func(t *testing.T) {
			p, m := newPlane(t, options...), newMachine()
			running(t, p, m, func(c *Config) { c.Heartbeat = 50 * time.Millisecond })
			s := next(t, p.streams, "the link")
			m.expect(t, "up")
			m.expect(t, "down: nothing came")
			next(t, s.gone, "the end on the other side")
			next(t, p.streams, "the second link")
			m.expect(t, "up")
		})
	}
}

func TestLinkComesBackWhenTheControlPlaneEndsIt(t *testing.T) {
	p, m := newPlane(t), newMachine()
	client, _ := running(t, p, m)
	for range 3 {
		s := next(t, p.streams, "the link")
		m.expect(t, "up")
		close(s.end)
		m.expect(t, "down: the control plane ended the session")
	}
	next(t, p.streams, "the link")
	m.expect(t, "up")
	if st := client.State(); !st.Connected || st.Error != "" {
		t.Errorf("state %+v", st)
	}
}

func TestDrainIsComeBackFromWithinItsWindow(t *testing.T) {
	p, m := newPlane(t), newMachine()
	// The wait of a failure would be for ever.
	running(t, p, m, func(c *Config) { c.MinBackoff, c.MaxBackoff = time.Hour, time.Hour })
	s := next(t, p.streams, "the link")
	m.expect(t, "up")
	s.send(t, link.Message{Type: link.MessageDrain, WindowSeconds: 0})
	m.expect(t, "down: the control plane is restarting")
	next(t, p.streams, "the second link")
	m.expect(t, "up")

	c := New(Config{})
	for range 100 {
		if w := c.wait(&backoff{min: time.Hour, max: time.Hour}, ended{err: &errDrain{30 * time.Second}}); w < 0 || w >= 30*time.Second {
			t.Fatal(w)
		}
	}
}

func TestE17RevokedIsToldOnce(t *testing.T) {
	p, m := newPlane(t), newMachine()
	client, path := running(t, p, m)
	s := next(t, p.streams, "the link")
	m.expect(t, "up")
	p.set(func() { p.refuse[link.PathLink], p.retry = link.NodeRevoked, "after 0 s" })
	s.send(t, link.Message{Type: link.MessageRevoked, Sentence: "the machine\nwas lost"})
	m.expect(t, "down: the machine | was lost")
	m.expect(t, "revoked: the machine | was lost")
	if st := client.State(); st.Connected || st.Revoked == "" {
		t.Errorf("state %+v", st)
	}
	for range 3 {
		next(t, p.refused, "a refusal")
	}
	if id, err := LoadIdentity(path); err != nil || id.Revoked == "" {
		t.Errorf("on disk: %+v, %v", id, err)
	}
	p.set(func() { delete(p.refuse, link.PathLink) })
	next(t, p.streams, "the link")
	m.expect(t, "up")
	if st := client.State(); st.Revoked != "" {
		t.Errorf("state %+v", st)
	}
	if id, err := LoadIdentity(path); err != nil || id.Revoked != "" {
		t.Errorf("on disk: %+v, %v", id, err)
	}
}

func TestL01ControlPlaneThatMovedIsFound(t *testing.T) {
	p, m := newPlane(t), newMachine()
	moved := newPlane(t, sibling(p))
	_, path := running(t, p, m)
	s := next(t, p.streams, "the link")
	m.expect(t, "up")
	s.send(t, link.Message{Type: link.MessageAddresses, Addresses: []string{p.address(), moved.address()}})
	s.send(t, link.Message{Type: link.MessageDeclaration, Declaration: inline("{}")})
	next(t, m.declarations, "the declaration")
	id, err := LoadIdentity(path)
	if err != nil || fmt.Sprint(id.Candidates) != "["+moved.address()+"]" {
		t.Fatalf("candidates %v, %v", id.Candidates, err)
	}
	p.server.Listener.Close()
	p.server.CloseClientConnections()
	m.expect(t, "down")
	next(t, moved.streams, "the link at the new address")
	m.expect(t, "up")
	if id, err = LoadIdentity(path); err != nil || id.Addresses[0] != moved.address() || len(id.Candidates) != 0 {
		t.Fatalf("addresses %v, candidates %v, %v", id.Addresses, id.Candidates, err)
	}
}

func TestCandidateIsAcknowledgedByTheSession(t *testing.T) {
	p, m := newPlane(t), newMachine()
	cfg := config(t, p.token())
	crashing := cfg
	crashing.step = func(s string) {
		if s == stepCandidate {
			panic("crash")
		}
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = Enrol(within(t, 30*time.Second), crashing)
	}()
	run(t, cfg.Path, m)
	s := next(t, p.streams, "the link")
	m.expect(t, "up")
	id, err := LoadIdentity(cfg.Path)
	if err != nil || id.Stage != StageActive || !p.acked[s.node] {
		t.Errorf("%+v, %v", id, err)
	}
}

func TestRunNeedsAnIdentity(t *testing.T) {
	c := New(Config{Path: t.TempDir() + "/identity.json"})
	if err := c.Run(t.Context()); fault.KindOf(err) != fault.Refused || fault.RemedyOf(err) == "" {
		t.Error(err)
	}
	path := t.TempDir() + "/identity.json"
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New(Config{Path: path}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}
