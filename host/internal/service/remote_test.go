package service

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// serveAt answers at the host's door with h, until the test or stop ends it.
func serveAt(t *testing.T, cfg Config, h http.Handler) (stop context.CancelFunc) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(cfg.Layout.HostSocket()), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := door.Listen(cfg.Layout.HostSocket(), door.OwnerOnly)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- door.Server{Handler: h, Log: cfg.Log}.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return stop
}

// cutting is a service that hangs up on its first questions.
func cutting(h http.Handler, cuts int64, asked *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if asked.Add(1) <= cuts {
				panic(http.ErrAbortHandler)
			}
		}
		h.ServeHTTP(w, r)
	})
}

func connected(t *testing.T, cfg Config) Host {
	t.Helper()
	h, done, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func TestAServiceThatIsBackIsAskedAgain(t *testing.T) {
	for cuts, want := range []int64{1, 2, 3, 3} {
		cfg := machine(t)
		var asked atomic.Int64
		s := working(t, cfg)
		serveAt(t, cfg, cutting(s.handler(), int64(cuts), &asked))
		r, err := connected(t, cfg).Apply(t.Context(), page("a", "1"))
		if fails := cuts >= mostAsked; Gone(err) != fails || !fails && err != nil || asked.Load() != want {
			t.Errorf("cut %d times, asked %d: %v", cuts, asked.Load(), err)
		}
		if err == nil && (len(r.Resources) != 1 || r.Resources[0].Key != "file:/srv/page") {
			t.Errorf("cut %d times: %+v", cuts, r)
		}
	}
}

// TestTheStoreOfAServiceThatEndsIsTakenOver: nobody is left to ask, so the command
// does the work itself, and the store is free after it.
func TestTheStoreOfAServiceThatEndsIsTakenOver(t *testing.T) {
	cfg := machine(t)
	end := func() {}
	end = serveAt(t, cfg, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			end()
			// It is not at the door any more when it hangs up.
			for {
				c, err := net.Dial("unix", cfg.Layout.HostSocket())
				if err != nil {
					break
				}
				c.Close()
			}
			panic(http.ErrAbortHandler)
		}
	}))
	h, done, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := h.(*remote); !ok {
		t.Fatalf("%T", h)
	}
	if _, err := h.Apply(t.Context(), page("a", "1")); err != nil {
		t.Error(err)
	}
	if st, err := h.Status(t.Context()); err != nil || st.Owned != 1 || st.Running {
		t.Errorf("%+v, %v", st, err)
	}
	if b, err := os.ReadFile(cfg.Layout.Path("/srv/page")); string(b) != "1" {
		t.Errorf("%q, %v", b, err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	working(t, cfg)
}

// TestEachVerbDoesTheSameAtTheDoor: answers and faults are those of the service.
func TestEachVerbDoesTheSameAtTheDoor(t *testing.T) {
	cfg := machine(t)
	s := working(t, cfg)
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	serveAt(t, cfg, s.handler())
	ctx, far := t.Context(), connected(t, cfg)
	if _, ok := far.(*remote); !ok {
		t.Fatalf("%T", far)
	}
	for name, ask := range map[string]func(Host) (any, error){
		"status":  func(h Host) (any, error) { return h.Status(ctx) },
		"owned":   func(h Host) (any, error) { return h.Owned(ctx) },
		"history": func(h Host) (any, error) { return h.History(ctx) },
		"metrics": func(h Host) (any, error) { return h.Metrics(ctx) },
		"plan":    func(h Host) (any, error) { return h.Plan(ctx, page("a", "2")) },
		"no plan": func(h Host) (any, error) { return h.Plan(ctx, []byte("{")) },
		"apply":   func(h Host) (any, error) { return h.Apply(ctx, []byte("{")) },
		"bundle":  func(h Host) (any, error) { return h.Bundle(ctx, BundleRequest{Digest: digest.FromString("none")}) },
		"enrol":   func(h Host) (any, error) { return h.Enrol(ctx, "no token") },
		"retire":  func(h Host) (any, error) { return h.Retire(ctx, RetireRequest{DryRun: true}) },
	} {
		a, errA := ask(s)
		b, errB := ask(far)
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if string(x) != string(y) || (errA == nil) != (errB == nil) || errA != nil && (errA.Error() != errB.Error() || fault.KindOf(errA) != fault.KindOf(errB) || fault.RemedyOf(errA) != fault.RemedyOf(errB)) {
			t.Errorf("%s: %s, %v\nat the door: %s, %v", name, x, errA, y, errB)
		}
	}
	r, err := far.Pass(ctx)
	if err != nil || len(r.Resources) != 1 || r.Resources[0].Outcome != "unchanged" {
		t.Errorf("%+v, %v", r, err)
	}
	odd := door.Verb[map[string]int, link.Report]{Name: "pass"}
	if _, err := odd.Ask(ctx, asker(cfg), map[string]int{"force": 1}); fault.KindOf(err) != fault.Usage {
		t.Errorf("a question that says more than the service knows: %v", err)
	}
}
