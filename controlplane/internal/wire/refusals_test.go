package wire

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// hostDir is where hostBinary has built to, for TestMain to remove.
var hostDir string

// hostBinary builds mesh-host once, and says where it is.
var hostBinary = sync.OnceValues(func() (string, error) {
	var err error
	if hostDir, err = os.MkdirTemp("", "mesh-host-"); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", hostDir, "github.com/nox-mesh/nox-mesh/host/cmd/mesh-host")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return filepath.Join(hostDir, "mesh-host"), nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if hostDir != "" {
		_ = os.RemoveAll(hostDir)
	}
	os.Exit(code)
}

// hosted is a machine with mesh-host on it, which is a directory.
type hosted struct {
	t   *testing.T
	dir string
}

func newHosted(t *testing.T) *hosted {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles mesh-host")
	}
	r := &hosted{t, t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(r.identity()), 0o755); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *hosted) identity() string { return layout.Layout{Root: r.dir}.HostIdentity() }

// enrol runs `mesh-host enrol -` with a token.
func (r *hosted) enrol(token string) (exit int, out, said string) {
	r.t.Helper()
	bin, err := hostBinary()
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "enrol", "-", "--root", r.dir)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(token), &stdout, &stderr
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		r.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// rekeyed gives the identity another key, as one that was pieced together has.
func (r *hosted) rekeyed() {
	r.t.Helper()
	var id map[string]any
	b, err := os.ReadFile(r.identity())
	if err == nil {
		err = json.Unmarshal(b, &id)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	key, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, err2 := x509.MarshalPKCS8PrivateKey(key)
	id["key"] = der
	b, err3 := json.Marshal(id)
	if err := errors.Join(err1, err2, err3, os.WriteFile(r.identity(), b, 0o600)); err != nil {
		r.t.Fatal(err)
	}
}

// says is a control plane of p's mesh, at an address of its own, that greets with a
// refusal. It stands for one of another release.
func (p *plane) says(code link.Code) (address string) {
	p.t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", p.office.Authority.ServerConfig(p.clock))
	if err != nil {
		p.t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code.Status())
		_ = json.NewEncoder(w).Encode(code.Answer(start, ""))
	})}
	go func() { _ = srv.Serve(l) }()
	p.t.Cleanup(func() { srv.Close() })
	return l.Addr().String()
}

// at is a token that leads to another address.
func at(k link.Token, address string) link.Token { k.Addresses = []string{address}; return k }

// refusedTag is the tag of tokens that a rule of every plane here refuses.
const refusedTag = "no"

// TestE19EachRefusalHasACodeASentenceAndACommand: whatever an enrolment is refused
// for, the host ends with the right code and says it in one line, which names what
// it is about and what to do next.
func TestE19EachRefusalHasACodeASentenceAndACommand(t *testing.T) {
	refuses := admission.Policy{{Decision: admission.Refuse, Tag: refusedTag, Reason: "not of this site"}}
	rows := map[link.Code]struct {
		// token makes the refusal, and returns what is given to the host.
		token func(p *plane, r *hosted) string
		tune  func(*Server)
		exit  int
		// names is what the line is about, remedy the command.
		names, remedy string
	}{
		link.TokenMalformed: {token: func(p *plane, _ *hosted) string { return p.token(admission.TokenOptions{}).Text()[:80] },
			exit: 3, names: "the token", remedy: "mesh-controller token create"},
		link.TokenUnknown: {token: func(p *plane, _ *hosted) string {
			k := foreign(p, p.token(admission.TokenOptions{}), "0123456789abcdef")
			return k.Text()
		}, exit: 3, names: "does not know this token", remedy: "mesh-controller token create"},
		link.TokenExpired: {token: func(p *plane, _ *hosted) string {
			k := p.token(admission.TokenOptions{})
			p.clock.set(start.Add(2 * time.Hour))
			return k.Text()
		}, exit: 3, names: "expired at 2026-03-01T13:00:00Z", remedy: "mesh-controller token create"},
		link.TokenUsed: {token: func(p *plane, _ *hosted) string {
			c := p.asks(admission.TokenOptions{}, "first", "")
			return c.token.Text()
		}, exit: 3, names: "has been used", remedy: "mesh-controller token create"},
		link.TokenRevoked: {token: func(p *plane, _ *hosted) string {
			k := p.token(admission.TokenOptions{})
			if _, _, err := p.office.RevokeToken(k.ID); err != nil {
				p.t.Fatal(err)
			}
			return k.Text()
		}, exit: 3, names: "was revoked", remedy: "mesh-controller token create"},
		link.ScopeMismatch: {token: func(p *plane, _ *hosted) string { return p.token(admission.TokenOptions{Name: "nobody-*"}).Text() },
			exit: 3, names: `is for machines called "nobody-*"`, remedy: "mesh-controller token inspect"},
		link.BadProof: {token: func(p *plane, _ *hosted) string {
			k := p.token(admission.TokenOptions{})
			return foreign(p, k, k.ID).Text() // the right id, another secret
		}, exit: 3, names: "cannot accept the proof", remedy: "mesh-host enrol"},
		link.PinMismatch: {token: func(p *plane, _ *hosted) string {
			return at(p.token(admission.TokenOptions{}), newPlane(p.t).address).Text()
		}, exit: 3, names: "no address is its control plane's: 127.0.0.1:", remedy: "mesh-controller address list"},
		link.Pending: {token: func(p *plane, _ *hosted) string { return p.token(admission.TokenOptions{Pending: true}).Text() },
			exit: 0, names: "pending: a person has to admit this machine", remedy: "mesh-controller approve"},
		link.Refused: {token: func(p *plane, _ *hosted) string {
			return p.token(admission.TokenOptions{Tags: []string{refusedTag}}).Text()
		}, exit: 3, names: "this machine is refused: admission rule 1 refuses: not of this site", remedy: "mesh-controller approve"},
		link.EnrolmentConflict: {token: func(p *plane, r *hosted) string {
			if exit, _, said := r.enrol(p.token(admission.TokenOptions{Tags: []string{refusedTag}}).Text()); exit != 3 {
				p.t.Fatalf("%d %s", exit, said)
			}
			r.rekeyed()
			return p.token(admission.TokenOptions{}).Text()
		}, exit: 3, names: "was begun with another key", remedy: "enrol again with a new token"},
		link.ProtocolTooOld: {token: func(p *plane, _ *hosted) string {
			return at(p.token(admission.TokenOptions{}), p.says(link.ProtocolTooOld)).Text()
		}, exit: 3, names: "too old for the control plane", remedy: "mesh-host install"},
		link.ProtocolTooNew: {token: func(p *plane, _ *hosted) string {
			return at(p.token(admission.TokenOptions{}), p.says(link.ProtocolTooNew)).Text()
		}, exit: 3, names: "too new for the control plane", remedy: "run a newer release of the control plane"},
		link.Busy: {token: func(p *plane, _ *hosted) string { return p.token(admission.TokenOptions{}).Text() },
			tune: func(s *Server) { s.bodies = newBudget(0) },
			exit: 1, names: "too much is being sent at once", remedy: "wait; it is tried again"},
		link.StoreUnavailable: {token: func(p *plane, _ *hosted) string {
			k := p.token(admission.TokenOptions{})
			if err := p.office.Store.Close(); err != nil {
				p.t.Fatal(err)
			}
			return k.Text()
		}, exit: 1, names: "cannot write its state", remedy: "mesh-controller status"},
		link.NodeRevoked: {token: func(p *plane, r *hosted) string {
			// Refused, approved after all, and revoked before it came back.
			k := p.token(admission.TokenOptions{Tags: []string{refusedTag}})
			if exit, _, said := r.enrol(k.Text()); exit != 3 {
				p.t.Fatalf("%d %s", exit, said)
			}
			n := p.only()
			if _, err := p.office.Approve(n.ID, "web", nil, ""); err != nil {
				p.t.Fatal(err)
			}
			err := p.office.Store.Update(func(tx *state.Tx) error { _, _, err := p.office.Revoke(tx, n.ID); return err })
			if err != nil {
				p.t.Fatal(err)
			}
			return k.Text()
		}, exit: 3, names: "was revoked; the machine keeps what it has", remedy: "enrol again with a new token"},
	}
	// Two answer nodes, and are not of enrolling: TestWhatEverybodyMayDo, TestE16…
	for _, code := range codes(t) {
		if _, ok := rows[code]; !ok && code != link.NodeUnknown && code != link.NodeCloned {
			t.Errorf("%s: nobody provokes it", code)
		}
	}
	for code, row := range rows {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			r := newHosted(t)
			p := newPlane(t, func(s *Server) {
				s.office.Policy = refuses
				if row.tune != nil {
					row.tune(s)
				}
			})
			exit, out, said := r.enrol(row.token(p, r))
			if code == link.Pending { // which is no failure
				out, said = said, out
			}
			if exit != row.exit || out != "" {
				t.Errorf("exit %d, want %d; besides %q", exit, row.exit, out)
			}
			line, ended := strings.CutSuffix(said, "\n")
			if !ended || strings.Contains(line, "\n") || cli.OneLine(line) != line {
				t.Errorf("not one line: %q", said)
			}
			sentence, remedy, _ := strings.Cut(line, row.names)
			if code != link.Pending && !strings.HasPrefix(line, "mesh-host: cannot enrol: ") {
				t.Errorf("it does not say what failed: %s", line)
			}
			if remedy == "" || !strings.Contains(remedy, row.remedy) {
				t.Errorf("it says %q, want %q and then %q", line, row.names, row.remedy)
			}
			if code != link.Pending && code != link.TokenMalformed && code != link.PinMismatch && code != link.Busy && strings.Count(line, "; ") < 1 {
				t.Errorf("no command: %q %q", sentence, remedy)
			}
			t.Log(line)
		})
	}
}

// codes are those there are, as the source has them.
func codes(t *testing.T) (out []link.Code) {
	t.Helper()
	b, err := os.ReadFile("../../../host/link/code.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`Code += "([a-z_]+)"|Code = "([a-z_]+)"`).FindAllStringSubmatch(string(b), -1) {
		out = append(out, link.Code(m[1]+m[2]))
	}
	if len(out) < 17 {
		t.Fatalf("only %v", out)
	}
	return out
}

// only is the one node there is.
func (p *plane) only() *state.Node {
	p.t.Helper()
	var ns []*state.Node
	err := p.office.Store.View(func(tx *state.Tx) (err error) { ns, err = tx.Nodes(); return err })
	if err != nil || len(ns) != 1 {
		p.t.Fatalf("%d nodes, %v", len(ns), err)
	}
	return ns[0]
}

// A refused machine is one node in the end, however it comes to be let in.
func TestARealHostComesBackFromARefusal(t *testing.T) {
	for name, again := range map[string]func(p *plane, first link.Token) link.Token{
		"with a new token": func(p *plane, _ link.Token) link.Token { return p.token(admission.TokenOptions{}) },
		"by an approval": func(p *plane, first link.Token) link.Token {
			if _, err := p.office.Approve(p.only().ID, "web", nil, ""); err != nil {
				p.t.Fatal(err)
			}
			return first
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHosted(t)
			p := newPlane(t, func(s *Server) {
				s.office.Policy = admission.Policy{{Decision: admission.Refuse, Tag: refusedTag}}
			})
			k := p.token(admission.TokenOptions{Tags: []string{refusedTag}})
			for range 2 {
				if exit, _, said := r.enrol(k.Text()); exit != 3 {
					t.Fatalf("%d %s", exit, said)
				}
			}
			was := p.only()
			if was.State != state.Refused || was.Decision.Profile == "" || was.Profile.Architecture == "" {
				t.Errorf("%+v", was)
			}
			if p.count("enrolment.refused") != 2 {
				t.Errorf("%d lines in the log", p.count("enrolment.refused"))
			}
			exit, out, said := r.enrol(again(p, k).Text())
			if exit != 0 || !strings.Contains(out, "enrolled as") {
				t.Fatalf("%d %s %s", exit, out, said)
			}
			if n := p.only(); n.ID != was.ID || n.State != state.Enrolled || n.Key != was.Key {
				t.Errorf("%+v", n)
			}
			if exit, out, _ := r.enrol(p.token(admission.TokenOptions{}).Text()); exit != 0 || !strings.Contains(out, "already enrolled") {
				t.Errorf("%d %s", exit, out)
			}
		})
	}
}
