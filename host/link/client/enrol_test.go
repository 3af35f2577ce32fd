package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func config(t testing.TB, tok link.Token) EnrolConfig {
	return EnrolConfig{
		Token: tok, Path: filepath.Join(t.TempDir(), "identity.json"),
		Facts: func() (profile.Profile, profile.Inventory) {
			return profile.Profile{Architecture: "amd64", Init: "none"}, profile.Inventory{Version: "1.0.0"}
		},
		Declaration: []byte(`{"schema":1,"name":"first"}`), Version: "1.0.0",
		Clock:      clock.At(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)),
		minBackoff: time.Millisecond,
	}
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func enrolled(t testing.TB, p *plane, cfg EnrolConfig) *Identity {
	t.Helper()
	id, err := Enrol(within(t, 30*time.Second), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if id.Stage != StageActive || id.Mesh != "m1" || id.NodeID == "" || id.Name != "web-"+id.NodeID || id.Epoch != 3 {
		t.Fatalf("got %+v", id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.acked[id.NodeID] {
		t.Fatal("the control plane does not know that the node has its credential")
	}
	saved, err := LoadIdentity(cfg.Path)
	if err != nil || saved.Stage != StageActive || saved.NodeID != id.NodeID {
		t.Fatalf("on disk: %+v, %v", saved, err)
	}
	return id
}

func TestEnrolMakesANodeWithItsProfileAndDeclaration(t *testing.T) {
	for name, options := range map[string][]planeOption{
		"HTTP/2": nil, "HTTP/1.1": {http1}, "in 1970": {inYear(1970)}, "in 2100": {inYear(2100)},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t, options...)
			cfg := config(t, p.token())
			id := enrolled(t, p, cfg)
			if q := p.seen[0]; q.Profile.Architecture != "amd64" || q.Inventory.Version != "1.0.0" || string(q.Declaration) != string(cfg.Declaration) {
				t.Errorf("sent %+v", q)
			}
			if p.hellos != 1 || len(p.seen) != 1 {
				t.Errorf("%d greetings, %d requests", p.hellos, len(p.seen))
			}
			fi, err := os.Stat(cfg.Path)
			if err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", fi.Mode(), err)
			}
			if len(id.Addresses) != 1 || id.Addresses[0] != p.address() {
				t.Error("addresses", id.Addresses)
			}
		})
	}
}

func TestAddressOfSomebodyElseIsDroppedAndTheNextOneTaken(t *testing.T) {
	stranger, p := newPlane(t), newPlane(t)
	p.addresses = []string{p.address(), "10.9.9.9:7443"}
	cfg := config(t, p.token(stranger.address(), p.address()))
	var logged bytes.Buffer
	cfg.Log = slog.New(slog.NewTextHandler(&logged, nil))
	id := enrolled(t, p, cfg)
	if stranger.hellos != 0 {
		t.Error("the stranger was spoken to")
	}
	if !strings.Contains(logged.String(), stranger.address()) {
		t.Error("the dropped address is not named:", logged.String())
	}
	if fmt.Sprint(id.Addresses) != "["+p.address()+"]" || fmt.Sprint(id.Candidates) != "[10.9.9.9:7443]" {
		t.Error("addresses", id.Addresses, id.Candidates)
	}
}

func TestOnlyStrangersIsPermanentAndNamesThem(t *testing.T) {
	a, b, p := newPlane(t), newPlane(t), newPlane(t)
	_, err := Enrol(within(t, 30*time.Second), config(t, p.token(a.address(), b.address())))
	if link.CodeOf(err) != link.PinMismatch || fault.KindOf(err) != fault.Refused {
		t.Fatal(err)
	}
	for _, s := range []string{a.address(), b.address()} {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not name %s", err, s)
		}
	}
}

func TestDeadAddressIsPassedOver(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	l.Close()
	p := newPlane(t)
	enrolled(t, p, config(t, p.token(dead, p.address())))

	ctx, cancel := context.WithCancel(context.Background())
	cfg := config(t, p.token(dead))
	cfg.Log = slog.New(onWarn{slog.DiscardHandler, slog.LevelInfo, cancel})
	_, err = Enrol(ctx, cfg)
	if err == nil || !strings.Contains(err.Error(), dead) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v, want the address and the cause", err)
	}
}

// onWarn calls f at the first record of that level.
type onWarn struct {
	slog.Handler
	level slog.Level
	f     func()
}

func (h onWarn) Enabled(context.Context, slog.Level) bool { return true }
func (h onWarn) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= h.level {
		h.f()
	}
	return nil
}

func TestLostAnswerIsAskedForAgainWithTheSameIDAndKey(t *testing.T) {
	for _, path := range []string{link.PathHello, link.PathEnrol, link.PathAck} {
		t.Run(path, func(t *testing.T) {
			for name, options := range map[string][]planeOption{"HTTP/2": nil, "HTTP/1.1": {http1}} {
				p := newPlane(t, options...)
				p.drop[path] = 3
				enrolled(t, p, config(t, p.token()))
				if len(p.nodes) != 1 {
					t.Errorf("%s: %d nodes", name, len(p.nodes))
				}
				for _, q := range p.seen {
					if q.EnrolmentID != p.seen[0].EnrolmentID || !bytes.Equal(q.CSR, p.seen[0].CSR) {
						t.Errorf("%s: a retry has another id or key", name)
					}
				}
			}
		})
	}
}

func TestCrashBetweenAnyTwoStepsGivesOneNode(t *testing.T) {
	for _, step := range []string{stepKeyed, stepGreeted, stepAnswered, stepCandidate, stepAcked, stepActive} {
		t.Run(step, func(t *testing.T) {
			p := newPlane(t)
			cfg := config(t, p.token())
			func() {
				defer func() {
					if recover() != "crash" {
						t.Fatal("the step was never reached")
					}
				}()
				crashing := cfg
				crashing.step = func(s string) {
					if s == step {
						panic("crash")
					}
				}
				_, _ = Enrol(within(t, 30*time.Second), crashing)
			}()
			before, err := LoadIdentity(cfg.Path)
			if err != nil || before == nil {
				t.Fatal("nothing durable is left", err)
			}
			id, err := Enrol(within(t, 30*time.Second), cfg)
			if step == stepActive {
				if !errors.Is(err, ErrAlreadyEnrolled) {
					t.Fatal(err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if len(p.nodes) != 1 || !p.acked[id.NodeID] || id.Stage != StageActive {
				t.Errorf("%d nodes, acked %v, %v", len(p.nodes), p.acked, id.Stage)
			}
			if id.EnrolmentID != before.EnrolmentID || !id.key().Equal(before.key()) {
				t.Error("the retry made another id or key")
			}
		})
	}
}

func TestCandidateNobodyKnowsAnyMoreIsAskedForAgain(t *testing.T) {
	p := newPlane(t)
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
	p.refuse[link.PathAck], p.retry = link.NodeUnknown, "after 0 s"
	cfg.Log = slog.New(onWarn{slog.DiscardHandler, slog.LevelInfo, func() {
		p.set(func() { delete(p.refuse, link.PathAck) })
	}})
	enrolled(t, p, cfg)
	if len(p.seen) != 2 || len(p.nodes) != 1 {
		t.Errorf("step 3 was done %d times for %d nodes, want once before and once after", len(p.seen), len(p.nodes))
	}
}

func TestEnrollingTwiceDoesNotUseTheToken(t *testing.T) {
	p := newPlane(t)
	cfg := config(t, p.token())
	first := enrolled(t, p, cfg)
	cfg.Token = p.token()
	again, err := Enrol(within(t, 30*time.Second), cfg)
	if !errors.Is(err, ErrAlreadyEnrolled) || again.Name != first.Name {
		t.Fatal(again, err)
	}
	if len(p.seen) != 1 || p.hellos != 1 {
		t.Error("the control plane was asked")
	}
	if cfg.Token, err = link.NewToken("m2", []string{p.address()}, []string{link.Pin(p.root)}, p.to, ""); err != nil {
		t.Fatal(err)
	}
	_, err = Enrol(within(t, 30*time.Second), cfg)
	if fault.KindOf(err) != fault.Refused || !strings.Contains(fault.RemedyOf(err), "revoke the node there") {
		t.Errorf("into another mesh: %v", err)
	}
}

func TestRevokedMachineEnrolsAnewWithAnotherKey(t *testing.T) {
	p := newPlane(t)
	cfg := config(t, p.token())
	old := enrolled(t, p, cfg)
	old.Revoked = "lost"
	if err := old.Save(cfg.Path); err != nil {
		t.Fatal(err)
	}
	cfg.Token = p.token()
	id := enrolled(t, p, cfg)
	if id.NodeID == old.NodeID || id.EnrolmentID == old.EnrolmentID || id.key().Equal(old.key()) || id.Revoked != "" {
		t.Errorf("the new node is %+v", id)
	}
}

func TestRefusalIsFinalAndSaysWhatToDo(t *testing.T) {
	for _, code := range []link.Code{link.TokenUsed, link.TokenExpired, link.TokenRevoked, link.ScopeMismatch, link.Refused, link.EnrolmentConflict} {
		p := newPlane(t)
		p.refuse[link.PathEnrol] = code
		_, err := Enrol(within(t, 30*time.Second), config(t, p.token()))
		if link.CodeOf(err) != code || fault.KindOf(err) != fault.Refused || fault.RemedyOf(err) != code.Remedy() || !strings.Contains(err.Error(), code.Sentence()) {
			t.Errorf("%s: %v; %s", code, err, fault.RemedyOf(err))
		}
		if p.hellos != 1 {
			t.Errorf("%s: tried %d times", code, p.hellos)
		}
	}
}

func TestBusyIsTriedAgain(t *testing.T) {
	p := newPlane(t)
	p.refuse[link.PathEnrol], p.retry = link.Busy, "after 0 s"
	cfg := config(t, p.token())
	cfg.Log = slog.New(onWarn{slog.DiscardHandler, slog.LevelInfo, func() {
		p.set(func() { delete(p.refuse, link.PathEnrol) })
	}})
	enrolled(t, p, cfg)
}

func TestPendingIsPolledUntilAdmittedOrTheCallerGivesUp(t *testing.T) {
	p := newPlane(t)
	p.refuse[link.PathEnrol], p.retry = link.Pending, "after 0 s"
	cfg := config(t, p.token())
	ctx, cancel := context.WithCancel(context.Background())
	cfg.Log = slog.New(onWarn{slog.DiscardHandler, slog.LevelInfo, func() {
		if p.hellos >= 3 {
			cancel()
		}
	}})
	if _, err := Enrol(ctx, cfg); !errors.Is(err, ErrPending) {
		t.Fatal(err)
	}
	p.refuse = map[string]link.Code{}
	enrolled(t, p, cfg)
}

func TestTurnedDownWhilePendingItEnrolsAnewWithAnotherKey(t *testing.T) {
	p := newPlane(t)
	cfg := config(t, p.token())
	p.refuse[link.PathEnrol], p.retry = link.Pending, "after 0 s"
	var first *Identity
	cfg.Log = slog.New(onWarn{slog.DiscardHandler, slog.LevelInfo, func() {
		first, _ = LoadIdentity(cfg.Path)
		p.set(func() { p.refuse[link.PathEnrol], p.retry = link.NodeRevoked, "" })
	}})
	if _, err := Enrol(within(t, 30*time.Second), cfg); link.CodeOf(err) != link.NodeRevoked || p.hellos != 2 {
		t.Fatalf("after %d calls: %v", p.hellos, err)
	}
	p.refuse, cfg.Token = map[string]link.Code{}, p.token()
	if id := enrolled(t, p, cfg); first == nil || id.key().Equal(first.key()) || id.EnrolmentID == first.EnrolmentID {
		t.Errorf("it came back as who was turned down: enrolment %s", id.EnrolmentID)
	}
}

func TestARefusedMachineComesBackAsTheSame(t *testing.T) {
	p := newPlane(t)
	cfg := config(t, p.token())
	p.refuse[link.PathEnrol] = link.Refused
	if _, err := Enrol(within(t, 30*time.Second), cfg); link.CodeOf(err) != link.Refused {
		t.Fatal(err)
	}
	first, err := LoadIdentity(cfg.Path)
	if err != nil || first == nil || first.Stage != StageEnrolling || first.Certificate != nil {
		t.Fatalf("it keeps %+v, %v; want its key and no more", first, err)
	}
	p.refuse, cfg.Token = map[string]link.Code{}, p.token()
	if id := enrolled(t, p, cfg); !id.key().Equal(first.key()) || id.EnrolmentID != first.EnrolmentID {
		t.Errorf("it came back as another: enrolment %s", id.EnrolmentID)
	}
}

func TestProtocolsThatDoNotMeetAreNamed(t *testing.T) {
	for r, want := range map[link.Range]link.Code{{Min: 2, Max: 3}: link.ProtocolTooOld, {Min: 0, Max: 0}: link.ProtocolTooNew} {
		p := newPlane(t)
		p.protocol = r
		if _, err := Enrol(within(t, 30*time.Second), config(t, p.token())); link.CodeOf(err) != want {
			t.Errorf("%v: %v", r, err)
		}
	}
}
