package service_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/service"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// machine is a machine that is a directory.
type machine struct {
	t   *testing.T
	l   layout.Layout
	cl  *admin.Client
	log lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	l := layout.Layout{Root: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(l.ControllerConfig()), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.ControllerConfig(), []byte(`listen = "127.0.0.1:0"`), 0o644); err != nil {
		t.Fatal(err)
	}
	return &machine{t: t, l: l, cl: admin.NewClient(l.ControllerSocket())}
}

// serve starts the control plane and returns what stops it.
func (m *machine) serve() (stop func() error) {
	m.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx, m.l, clock.System, slog.New(slog.NewTextHandler(&m.log, nil))) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	m.t.Cleanup(func() { _ = stop() })
	if err := m.cl.Wait(m.t.Context(), 20*time.Second); err != nil {
		m.t.Fatal(err)
	}
	return stop
}

func ask[Q, A any](m *machine, f func(context.Context, *admin.Client, Q) (A, error), q Q) A {
	m.t.Helper()
	a, err := f(m.t.Context(), m.cl, q)
	if err != nil {
		m.t.Fatal(err)
	}
	return a
}

// enrol is a machine that enrols with what it has.
func (m *machine) enrol(made admin.TokenMade, hostname, has string) *wiretest.Node {
	m.t.Helper()
	token, err := link.ParseToken([]byte(made.Token))
	if err != nil {
		m.t.Fatal(err)
	}
	n, err := wiretest.New(token)
	if err != nil {
		m.t.Fatal(err)
	}
	req, err := n.Request(hostname)
	if err != nil {
		m.t.Fatal(err)
	}
	req.Declaration = []byte(has)
	if a, err := n.Enrol(m.t.Context(), token, req); err != nil || a.Code != "" {
		m.t.Fatalf("%+v, %v", a, err)
	}
	return n
}

func await(t *testing.T, s *wiretest.Session, want link.MessageType) link.Message {
	t.Helper()
	m, err := s.Await(want)
	if err != nil {
		t.Fatalf("no %s came: %v", want, err)
	}
	return m
}

func TestTheLifeOfANode(t *testing.T) {
	m := newMachine(t)
	stop := m.serve()
	made := ask(m, admin.TokenCreate.Ask, admission.TokenOptions{TTL: time.Hour, Uses: 1, Tags: []string{"first"}})
	n := m.enrol(made, "one", `{"schema":1,"name":"control-plane","resources":[{"id":"c","type":"file","path":"/etc/c","content":"c"}]}`)
	if ns := ask(m, admin.Nodes.Ask, admin.None{}); len(ns) != 1 || ns[0].State != "enrolling" {
		t.Errorf("before the ack: %+v", ns)
	}
	if ts := ask(m, admin.TokenList.Ask, admin.None{}); len(ts) != 1 || len(ts[0].Holders) != 1 || ts[0].Holders[0].Used || ts[0].Code != link.TokenUsed {
		t.Errorf("before the ack: %+v", ts)
	}
	if a, err := n.Ack(t.Context()); err != nil || a.Code != "" {
		t.Fatalf("%+v, %v", a, err)
	}
	if ns := ask(m, admin.Nodes.Ask, admin.None{}); ns[0].State != "enrolled" || ns[0].Connected || !ns[0].LastSeen.IsZero() {
		t.Errorf("it never connected: %+v", ns)
	}
	s, err := n.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := await(t, s, link.MessageDeclaration).Declaration
	if d, err := declaration.Parse(first.Document); err != nil || d.Generation != 1 || d.Resources[0].ID != "control-plane/c" {
		t.Errorf("%+v, %v", d, err)
	}
	if ns := ask(m, admin.Nodes.Ask, admin.None{}); ns[0].State != "enrolled" || !ns[0].Connected || ns[0].LastSeen.IsZero() {
		t.Errorf("with the link: %+v", ns)
	}
	doc := []byte(`{"schema":1,"name":"motd","resources":[{"id":"m","type":"file","path":"/etc/motd","content":"hi"}]}`)
	if c := ask(m, admin.Declare.Ask, admin.Declaration{Name: "motd", Document: doc, Placement: []string{"tag=first"}}); len(c.Nodes) != 1 {
		t.Errorf("declare: %+v", c)
	}
	second := await(t, s, link.MessageDeclaration).Declaration
	if second.Generation != 2 || !strings.Contains(string(second.Document), `"motd/m"`) {
		t.Errorf("second: %+v", second)
	}
	for i, bad := range []string{"", "cannot write", "cannot write"} {
		rep := link.Report{ID: wiretest.ID(), Source: "link", Mesh: n.Mesh, Epoch: 1, Generation: 2, Version: "1.0.0", Trigger: "declaration"}
		out := link.ResourceReport{Key: "file:/etc/motd", ID: "motd/m", Outcome: declaration.Applied}
		if bad != "" {
			out.Outcome, out.Error = declaration.Failed, bad
		}
		rep.Resources = append(rep.Resources, out)
		if _, a, err := n.Post(t.Context(), link.PathReports, rep); err != nil || a.Code != "" {
			t.Fatalf("report %d: %+v, %v", i, a, err)
		}
	}
	d := ask(m, admin.Show.Ask, admin.Ref{Ref: "one"})
	if d.Applied != 2 || d.Failed != 1 || len(d.Reports) != 3 || len(d.Failing) != 1 || d.Failing[0].Error != "cannot write" ||
		!d.Failing[0].Since.Equal(d.Reports[1].At) || strings.Join(d.Modules, " ") != "control-plane motd" {
		t.Errorf("show: %+v", d)
	}

	// The control plane is stopped and comes back; the node needs nothing new.
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	await(t, s, link.MessageDrain)
	s.Close()
	if err := <-ended; err != nil {
		t.Fatalf("stop: %v", err)
	}
	m.serve()
	if ns := ask(m, admin.Nodes.Ask, admin.None{}); ns[0].State != "disconnected" || ns[0].Connected {
		t.Errorf("without the link: %+v", ns)
	}
	n.Address = ask(m, admin.AddressList.Ask, admin.None{}).Addresses[0]
	again, err := n.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if d := await(t, again, link.MessageDeclaration).Declaration; d.Generation != 2 || d.Digest != second.Digest {
		t.Errorf("after the restart: %+v", d)
	}
	ask(m, admin.Revoke.Ask, admin.Leaving{Ref: "one"})
	await(t, again, link.MessageRevoked)
	if ns := ask(m, admin.Nodes.Ask, admin.None{}); ns[0].State != "revoked" || ns[0].LastSeen.IsZero() {
		t.Errorf("at the end: %+v", ns)
	}
	m.noTrace(strings.Split(made.Token, ".")[2])
}

// noTrace wants a secret to be nowhere in what the run left.
func (m *machine) noTrace(secret string) {
	m.t.Helper()
	read := 0
	err := filepath.WalkDir(m.l.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			m.t.Errorf("the secret of the token is in %q", path)
		}
		read += len(b)
		return err
	})
	if err != nil || read < 16<<10 {
		m.t.Errorf("read %d bytes, %v", read, err)
	}
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	if bytes.Contains(m.log.b.Bytes(), []byte(secret)) || m.log.b.Len() == 0 {
		m.t.Errorf("the secret of the token is in the log, or there is no log: %s", m.log.b.String())
	}
}

// The control plane knows itself in a declaration: by its path, through the
// symlinks on the way, in the directory that stands for the machine.
func TestTheControlPlaneKnowsTheModuleItRunsBy(t *testing.T) {
	m := newMachine(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := m.l.Path("/usr/local/bin/mesh-controller")
	if err := errors.Join(os.MkdirAll(filepath.Dir(bin), 0o755), os.Symlink(exe, bin)); err != nil {
		t.Fatal(err)
	}
	m.serve()
	made := ask(m, admin.TokenCreate.Ask, admission.TokenOptions{TTL: time.Hour, Uses: 1, Name: "alpha"})
	m.enrol(made, "alpha", `{"schema":1,"name":"control-plane","resources":[
	  {"id":"server","type":"process","name":"mesh-controller","command":["/usr/local/bin/mesh-controller","serve"]}]}`)
	_, err = admin.Undeclare.Ask(t.Context(), m.cl, admin.ModuleRef{Name: "control-plane"})
	if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), `"process:mesh-controller"`) {
		t.Errorf("%v", err)
	}
	if _, err := admin.Undeclare.Ask(t.Context(), m.cl, admin.ModuleRef{Name: "control-plane", Last: true}); err != nil {
		t.Error(err)
	}
}

func TestTheSecondToServeIsToldWhoHoldsTheState(t *testing.T) {
	m := newMachine(t)
	m.serve()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // one that serves ends too
	defer cancel()
	err := service.Run(ctx, m.l, clock.System, slog.New(slog.DiscardHandler))
	if fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "holds it") || fault.RemedyOf(err) == "" {
		t.Errorf("%v", err)
	}
	ask(m, admin.GetStatus.Ask, admin.None{}) // the first is unharmed
}

func TestAFaultComesThroughTheSocketWhole(t *testing.T) {
	m := newMachine(t)
	m.serve()
	_, err := admin.Show.Ask(t.Context(), m.cl, admin.Ref{Ref: "nobody"})
	if fault.KindOf(err) != fault.Refused || fault.RemedyOf(err) == "" || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("%v (kind %d, remedy %q)", err, fault.KindOf(err), fault.RemedyOf(err))
	}
}

func TestTheStateDirectoryIsItsOwnersAlone(t *testing.T) {
	m := newMachine(t)
	stop := m.serve()
	if fi, err := os.Stat(m.l.ControllerState()); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(m.l.ControllerState(), 0o777); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // one that serves ends too
	defer cancel()
	err := service.Run(ctx, m.l, clock.System, slog.New(slog.DiscardHandler))
	if fault.KindOf(err) != fault.Refused {
		t.Errorf("a directory anybody may write in: %v", err)
	}
}

func TestAQuestionWaitsForAControlPlaneThatRestarts(t *testing.T) {
	m := newMachine(t)
	if err := m.serve()(); err != nil {
		t.Fatal(err)
	}
	q := admin.Declaration{Name: "m", Document: []byte(`{"schema":1,"name":"m","resources":[]}`)}
	if _, err := admin.Declare.Ask(t.Context(), m.cl, q); err == nil || !strings.Contains(fault.RemedyOf(err), "mesh-host status") {
		t.Errorf("without patience: %v; %s", err, fault.RemedyOf(err))
	}
	patient := admin.NewClient(m.l.ControllerSocket())
	patient.Patience = 20 * time.Second
	answered := make(chan error, 1)
	go func() {
		_, err := admin.Declare.Ask(t.Context(), patient, q)
		answered <- err
	}()
	m.serve()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	// Where none ever was, nobody waits.
	none := admin.NewClient(filepath.Join(t.TempDir(), "none", "controller.sock"))
	none.Patience = time.Hour
	if _, err := admin.Nodes.Ask(t.Context(), none, admin.None{}); err == nil || !strings.Contains(fault.RemedyOf(err), "mesh-controller serve") {
		t.Errorf("%v; %s", err, fault.RemedyOf(err))
	}
}
