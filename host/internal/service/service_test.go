package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// machine is the layout of a machine with a host installed.
func machine(t *testing.T) Config {
	t.Helper()
	l := layout.Layout{Root: t.TempDir()}
	if err := os.MkdirAll(l.State(), 0o700); err != nil {
		t.Fatal(err)
	}
	return Config{Layout: l, Clock: clock.System, Log: slog.New(slog.DiscardHandler)}
}

// working is a service whose loop runs, as a command opens it.
func working(t *testing.T, cfg Config) *Service {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.start(beat{})
	t.Cleanup(func() { s.Close() })
	return s
}

func page(name, text string) []byte {
	return fmt.Appendf(nil, `{"schema": 1, "name": %q, "resources": [{"id": "a", "type": "file", "path": "/srv/page", "content": %q}]}`, name, text)
}

func TestH05AnAnswerBelongsToItsQuestion(t *testing.T) {
	s := working(t, machine(t))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			doc := page(fmt.Sprintf("n%d", i), fmt.Sprint(i))
			r, err := s.Apply(t.Context(), doc)
			if err == nil && r.Declaration != digestOf(doc) {
				t.Errorf("%d was told what became of another: %+v", i, r)
			}
			if err != nil && !strings.Contains(err.Error(), "another declaration was accepted") {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

func TestH06APassThatFindsNothingNewLeavesNoTrace(t *testing.T) {
	s := working(t, machine(t))
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	before := s.store.Writes()
	for range 3 {
		if _, err := s.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if now := s.store.Writes(); now != before {
		t.Errorf("%d pages written", now-before)
	}
	if h, err := s.History(t.Context()); err != nil || len(h) != 1 {
		t.Errorf("%d reports, %v", len(h), err)
	}
}

func TestStatusSaysWhatIsThereNow(t *testing.T) {
	s := working(t, machine(t))
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Status(t.Context()); err != nil || st.State != StateHosted || st.Owned != 1 || len(st.Off) != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	if err := os.WriteFile(s.Layout.Path("/srv/page"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	st, err := s.Status(t.Context())
	if err != nil || len(st.Off) != 1 || st.Off[0].Key != "file:/srv/page" || st.Off[0].There != drifted {
		t.Errorf("%+v, %v", st.Off, err)
	}
	owned, err := s.Owned(t.Context())
	if err != nil || len(owned) != 1 || owned[0].There != drifted {
		t.Errorf("%+v, %v", owned, err)
	}
}

// What is owned and is as it was applied is not as declared when what is declared
// now could not be done.
func TestStatusSaysWhatIsNotYetAsDeclared(t *testing.T) {
	s := working(t, machine(t))
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.Layout.Path("/srv/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	doc := `{"schema": 1, "name": "a", "resources": [{"id": "b", "type": "file", "path": "/srv/b", "content": ""},
		{"id": "a", "type": "file", "path": "/srv/page", "content": "2", "after": ["b"]}]}`
	if _, err := s.Apply(t.Context(), []byte(doc)); err != nil {
		t.Fatal(err)
	}
	st, err := s.Status(t.Context())
	if err != nil || len(st.Off) != 2 || st.Off[1].Key != "file:/srv/page" || st.Off[1].There != "skipped" || !strings.Contains(strings.Join(st.Off[1].Differences, ""), `waits for "b"`) {
		t.Errorf("%+v, %v", st.Off, err)
	}
}

// held is a kind whose things somebody holds as they are.
type held struct{ resource.Kind }

func (held) Check(context.Context, resource.Want, *resource.Record) (resource.State, error) {
	return resource.State{}, fmt.Errorf("cannot check it: %w", resource.Held{Why: "its files differ: it is on hold"})
}

func TestP08ALookAtWhatSomebodyHoldsSaysHeld(t *testing.T) {
	engine := &apply.Engine{Log: slog.New(slog.DiscardHandler), Kinds: map[declaration.Type]resource.Kind{declaration.TypePackage: held{}}}
	f := look(t.Context(), engine.Inquire(patience), resource.Record{ID: "x", Type: declaration.TypePackage, Spec: []byte(`{"type":"package","name":"htop"}`)})
	if f.there != "held" || len(f.how) != 1 || f.how[0] != "its files differ: it is on hold" {
		t.Errorf("%+v", f)
	}
}

func TestNewsIsWhatTheLastReportDidNotSay(t *testing.T) {
	line := func(o declaration.Outcome, err string) link.ResourceReport {
		return link.ResourceReport{Key: "k", ID: "i", Outcome: o, Error: err}
	}
	report := func(lines ...link.ResourceReport) link.Report {
		return link.Report{Declaration: "d", Version: "1", Resources: lines}
	}
	failed := report(line(declaration.Failed, "no"))
	for name, c := range map[string]struct {
		before *link.Report
		now    link.Report
		news   bool
	}{
		"the first":           {nil, report(), true},
		"all unchanged":       {new(report(line(declaration.Applied, ""))), report(line(declaration.Unchanged, "")), false},
		"repaired":            {new(report()), report(line(declaration.Repaired, "")), true},
		"fails as before":     {&failed, failed, false},
		"fails otherwise":     {&failed, report(line(declaration.Failed, "yes")), true},
		"fails no more":       {&failed, report(line(declaration.Unchanged, "")), true},
		"fails now":           {new(report(line(declaration.Unchanged, ""))), failed, true},
		"another declaration": {new(report()), link.Report{Declaration: "e", Version: "1"}, true},
		"another version":     {new(report()), link.Report{Declaration: "d", Version: "2"}, true},
	} {
		if got := newsIn(c.before, c.now); got != c.news {
			t.Errorf("%s: news %v", name, got)
		}
	}
}

func TestAskingMakesNothing(t *testing.T) {
	cfg := machine(t)
	if err := os.RemoveAll(cfg.Layout.Path("/var")); err != nil {
		t.Fatal(err)
	}
	_, _, err := Connect(t.Context(), cfg)
	if err == nil || !strings.Contains(fault.RemedyOf(err), "mesh-host install") {
		t.Errorf("%v", err)
	}
	if es, _ := os.ReadDir(cfg.Layout.Root); len(es) != 0 {
		t.Errorf("made %v", es)
	}
}

func TestH04TheServiceAnswersAndTheCommandAsksIt(t *testing.T) {
	cfg := machine(t)
	var log bytes.Buffer
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	r := asker(cfg)
	deadline := time.Now().Add(20 * time.Second)
	for r.Greet(ctx) != nil {
		if time.Now().After(deadline) {
			t.Fatalf("it does not answer:\n%s", log.String())
		}
		<-time.After(5 * time.Millisecond)
	}
	h, done, err := Connect(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := h.(*remote); !ok {
		t.Errorf("the command does the work itself: %T", h)
	}
	if _, err := h.Apply(ctx, page("a", "1")); err != nil {
		t.Error(err)
	}
	if _, err := h.Apply(ctx, []byte("{")); fault.KindOf(err) != fault.Refused {
		t.Errorf("the kind of a fault is lost on the way: %v", err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	// A second service says who is there, at once.
	if err := Run(ctx, cfg); err == nil || !strings.Contains(err.Error(), "another mesh-host runs") {
		t.Errorf("a second service: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if _, err := net.Dial("unix", cfg.Layout.HostSocket()); err == nil {
		t.Error("the socket still answers")
	}
	// And now the command works by itself.
	h, done, err = Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := h.Status(t.Context()); err != nil || st.Running || st.Owned != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	path := t.TempDir() + "/host.toml"
	for text, want := range map[string]time.Duration{"": DefaultInterval, "reconcile_interval = \"1s\"\n": time.Second, "# nothing\n": DefaultInterval} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if s, err := ReadSettings(path); err != nil || s.ReconcileInterval != want {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	}
	for _, bad := range []string{"reconcile_interval = 5\n", "reconcile_intervall = \"1m\"\n", "reconcile_interval = \"1ms\"\n", "[", "reconcile_interval = \"soon\"\n"} {
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSettings(path); fault.KindOf(err) != fault.Refused {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// A pipe in its place holds nobody up.
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSettings(path); !errors.Is(err, input.ErrNotRegular) {
		t.Errorf("%v", err)
	}
}

func TestOnlyAMachinesOwnArchitectureIsAdmitted(t *testing.T) {
	// older is tested where it lies; here is what Admit says of a bundle.
	for name, c := range map[string]struct {
		counter  uint64
		rollback bool
		want     string
	}{
		"newer": {5, false, ""}, "the same": {10, false, ""}, "older": {11, false, "older than what was applied"}, "older, said so": {11, true, ""},
	} {
		info := bundleInfo(10)
		err := Admit(info, c.counter, c.rollback)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	info := bundleInfo(10)
	info.Architecture = "s390x"
	if err := Admit(info, 0, true); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "wrong architecture") {
		t.Errorf("%v", err)
	}
	info = bundleInfo(10)
	info.MinimumHost = "99.0.0"
	if err := Admit(info, 0, true); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "needs mesh-host 99.0.0") {
		t.Errorf("%v", err)
	}
}

func digestOf(doc []byte) string { return digest.FromBytes(doc).String() }

func bundleInfo(counter uint64) *bundle.Info {
	return &bundle.Info{Name: "b", Version: "1", Architecture: bundle.Architecture(runtime.GOARCH), Counter: counter}
}
