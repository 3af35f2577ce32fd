package wire

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/provider"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/link"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// settable is a clock a test moves.
type settable struct {
	mu  sync.Mutex
	now time.Time
}

func (s *settable) Now() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.now }

func (s *settable) set(t time.Time) { s.mu.Lock(); defer s.mu.Unlock(); s.now = t }

// plane is a control plane that answers on loopback.
type plane struct {
	*Server
	t       *testing.T
	clock   *settable
	address string
	stop    func() error
	log     *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}
func (s *syncBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

func newPlane(t *testing.T, tune ...func(*Server)) *plane {
	t.Helper()
	dir := t.TempDir()
	store, err := state.Open(filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	clk := &settable{now: start}
	_, a, err := admission.Found(store, clk)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := content.Open(filepath.Join(dir, "content"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{t: t, clock: clk, address: l.Addr().String(), log: &syncBuffer{}}
	log := slog.New(slog.NewTextHandler(p.log, nil))
	grants := provider.NewBook(store, clk, log)
	o := &admission.Office{Store: store, Authority: a, Clock: clk, Grants: grants, Addresses: func() ([]string, error) { return []string{p.address}, nil }}
	p.Server = New(o, blobs, log)
	grants.Register(p.Downloads)
	for _, f := range tune {
		f(p.Server)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, small{l}) }()
	worked := make(chan struct{})
	go func() { grants.Run(ctx); close(worked) }()
	p.stop = sync.OnceValue(func() error { cancel(); <-worked; return <-ended })
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
		store.Close()
	})
	return p
}

// small is a listener whose connections buffer little, so that a peer that
// stops reading is soon noticed.
type small struct{ net.Listener }

func (s small) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(16 << 10)
	}
	return c, err
}

func (p *plane) token(opts admission.TokenOptions) link.Token {
	p.t.Helper()
	if opts.TTL == 0 {
		opts.TTL = time.Hour
	}
	if opts.Uses == 0 {
		opts.Uses = 1
	}
	k, err := p.office.CreateToken(opts, []string{p.address})
	if err != nil {
		p.t.Fatal(err)
	}
	return k
}

// host is a machine that has not enrolled, and what it would ask.
func (p *plane) host(t link.Token, hostname string) (*wiretest.Node, link.EnrolRequest) {
	p.t.Helper()
	n, err := wiretest.New(t)
	if err != nil {
		p.t.Fatal(err)
	}
	req, err := n.Request(hostname)
	if err != nil {
		p.t.Fatal(err)
	}
	return n, req
}

// node is a machine that has enrolled.
func (p *plane) node(hostname string) *wiretest.Node {
	p.t.Helper()
	k := p.token(admission.TokenOptions{})
	n, req := p.host(k, hostname)
	a, err := n.Enrol(p.t.Context(), k, req)
	if err != nil || a.Code != "" {
		p.t.Fatalf("enrol %s: %+v, %v", hostname, a, err)
	}
	if a, err := n.Ack(p.t.Context()); err != nil || a.Code != "" {
		p.t.Fatalf("ack %s: %+v, %v", hostname, a, err)
	}
	return n
}

func (p *plane) open(n *wiretest.Node) *wiretest.Session {
	p.t.Helper()
	s, err := n.Open(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(s.Close)
	return s
}

func (p *plane) await(s *wiretest.Session, m link.MessageType) link.Message {
	p.t.Helper()
	got, err := s.Await(m)
	if err != nil {
		p.t.Fatalf("no %s came: %v", m, err)
	}
	return got
}

// declare declares a module as the admin's door does.
func (p *plane) declare(name, doc string, on ...string) {
	p.t.Helper()
	p.declareAt(start, name, doc, on...)
}

func (p *plane) declareAt(at time.Time, name, doc string, on ...string) {
	p.t.Helper()
	var c module.Change
	err := p.office.Store.Update(func(tx *state.Tx) (err error) {
		c, err = module.Declare(tx, at, module.Wish{Name: name, Document: []byte(doc), Placement: on}, func(d digest.Digest) bool { return p.content.Has(d, -1) })
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Links.Changed(c.Nodes...)
}

func (p *plane) revoke(n *wiretest.Node) {
	p.t.Helper()
	err := p.office.Store.Update(func(tx *state.Tx) error {
		_, _, err := p.office.Revoke(tx, n.ID)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Links.Revoke(n.ID)
}

func (p *plane) record(n *wiretest.Node) (out *state.Node) {
	p.t.Helper()
	if err := p.office.Store.View(func(tx *state.Tx) (err error) { out, err = tx.Node(n.ID); return err }); err != nil {
		p.t.Fatal(err)
	}
	return out
}

func file(path, text string) string {
	return fmt.Sprintf(`{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":%q,"content":%q}]}`, path, text)
}

func wantAnswer(t *testing.T, a link.Answer, code link.Code) {
	t.Helper()
	if a.Code != code || code != "" && (a.Sentence == "" || a.Remedy == "" || a.Retry == "") || a.ServerTime.IsZero() {
		t.Errorf("answer %+v, want the code %q with sentence, remedy and retry", a, code)
	}
}

// over runs a test over both versions of HTTP.
func over(t *testing.T, f func(t *testing.T, http1 bool)) {
	t.Run("HTTP/2", func(t *testing.T) { f(t, false) })
	t.Run("HTTP/1.1", func(t *testing.T) { f(t, true) })
}

// count counts the events of a kind.
func (p *plane) count(kind string) (n int) {
	p.t.Helper()
	err := p.office.Store.View(func(tx *state.Tx) error {
		es, err := tx.Events(10_000)
		for _, e := range es {
			if e.Kind == kind {
				n++
			}
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func get(t *testing.T, n *wiretest.Node, path string) (int, string) {
	t.Helper()
	status, b, err := n.Get(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return status, string(b)
}

func put(t *testing.T, s *content.Store, text string) digest.Digest {
	t.Helper()
	d, _, err := s.Add(t.Context(), strings.NewReader(text), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
