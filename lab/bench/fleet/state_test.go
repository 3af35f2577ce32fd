package fleet

import (
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/fleet"
)

// BenchmarkState makes a state of many nodes, and starts a control plane on it.
func BenchmarkState(b *testing.B) {
	for b.Loop() {
		r := begin(b, 1<<30)
		r.fill(*whole)
		fi, err := os.Stat(filepath.Join(r.plane.Root, "var/lib/nox-mesh-controller/state.db"))
		must(b, err)
		u := r.usage()
		r.row("RSS after that (of its own)", "", "%s (%s), peak %s; state.db %s", mib(u.RSS), mib(u.Anon), mib(u.Peak), mib(fi.Size()))
		for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			var took []time.Duration
			for range 5 {
				must(b, r.plane.Stop(how))
				ready, err := r.plane.Start(b.Context())
				must(b, err)
				took = append(took, ready)
			}
			u = r.usage()
			r.row("ready after "+name(how)+", 5 times", "< 2 s", "p50 %s, last %s; RSS %s, peak %s", round(of(.5, took)), round(of(1, took)), mib(u.RSS), mib(u.Peak))
		}
		for what, args := range map[string][]string{"nodes": {"nodes"}, "status": {"status"}, "token list": {"token", "list"}} {
			began := time.Now()
			_, err := r.plane.Ask(b.Context(), args...)
			must(b, err)
			r.row("mesh-controller "+what, "", "%s", round(time.Since(began)))
		}
		for _, on := range []string{"node=node-7", "every"} {
			began := time.Now()
			must(b, r.plane.Declare(b.Context(), "fleet", r.mark(), on))
			r.row("declare --on "+on, "", "%s", round(time.Since(began)))
		}
		u = r.usage()
		r.row("RSS after that (of its own)", "", "%s (%s), peak %s", mib(u.RSS), mib(u.Anon), mib(u.Peak))
		r.print()
	}
}

// fill enrols so many machines, a few hundred over each connection.
func (r *run) fill(count int) {
	r.Helper()
	const together, streams, connections = 400, 24, 4
	token := r.token(count)
	began, before := time.Now(), r.usage()
	turn := make(chan struct{}, connections)
	var wg sync.WaitGroup
	for first := 0; first < count; first += together {
		ns := r.make(token, first, min(together, count-first))
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			if err := fleet.EnrolTogether(r.Context(), ns, streams); err != nil {
				r.Error(err)
			}
		})
	}
	wg.Wait()
	if r.Failed() {
		r.FailNow()
	}
	all := time.Since(began)
	r.row("enrolled over shared connections", ">= 300/s", "%d, %.0f/s; cpu %s", count, float64(count)/all.Seconds(), round(r.usage().CPU-before.CPU))
	known := r.known()
	if len(known) != count {
		r.Fatalf("%d machines became %d nodes", count, len(known))
	}
}

// TestState holds that as many nodes are there after a restart as were before.
func TestState(t *testing.T) {
	r := begin(t, 0)
	r.fill(500)
	before := r.known()
	must(t, r.plane.Stop(syscall.SIGKILL))
	_, err := r.plane.Start(t.Context())
	must(t, err)
	if after := r.known(); !maps.Equal(before, after) {
		t.Fatalf("%d nodes were, after kill -9, %d or others", len(before), len(after))
	}
}
