package fleet

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/lab/fleet"
)

var (
	nodes = flag.Int("nodes", 10_000, "how many nodes hold a link in the benchmark")
	whole = flag.Int("state", 100_000, "how many nodes the state has at the end of the benchmark")
)

func TestMain(m *testing.M) { fleet.Main(m) }

// A run is one control plane and its nodes, and what was seen of them.
type run struct {
	testing.TB
	bin, top string
	plane    *fleet.Plane
	crowd    *fleet.Crowd
	// burst is how many enrol at once, probes how often a latency is taken.
	burst, probes int
	marks         int
	rows          [][3]string
}

// begin starts a control plane; memory 0 is no limit.
func begin(t testing.TB, memory int64) *run {
	t.Helper()
	fleet.Require(t)
	// The path of a socket has 107 bytes, unix(7).
	top, err := os.MkdirTemp("", "fleet-")
	must(t, err)
	r := &run{TB: t, bin: filepath.Join(top, "bin"), top: top}
	r.plane = &fleet.Plane{Binary: filepath.Join(r.bin, "mesh-controller"), Root: filepath.Join(top, "c"), Memory: memory, Env: []string{"GODEBUG=gctrace=1"}}
	r.crowd = fleet.NewCrowd(t.Context())
	r.crowd.Reports = 5 * time.Second
	if _, bench := t.(*testing.B); !bench {
		r.crowd.Reports = 100 * time.Millisecond
	}
	t.Cleanup(func() {
		r.crowd.Close()
		must(t, r.plane.Close())
		must(t, os.RemoveAll(top))
	})
	build := exec.Command("go", "build", "-o", r.bin+"/", "../../../controlplane/cmd/mesh-controller", "../../../host/cmd/mesh-host")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, err = r.plane.Start(t.Context())
	must(t, err)
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// row notes what was aimed at and what was seen.
func (r *run) row(what, aim, seen string, args ...any) {
	r.rows = append(r.rows, [3]string{what, aim, fmt.Sprintf(seen, args...)})
	if _, bench := r.TB.(*testing.B); bench {
		fmt.Fprintf(os.Stderr, "%-52s %-24s %s\n", what, aim, r.rows[len(r.rows)-1][2])
	}
}

func (r *run) token(uses int, more ...string) link.Token {
	r.Helper()
	t, err := r.plane.Token(r.Context(), uses, more...)
	must(r, err)
	return t
}

// make makes machines with the numbers from first on.
func (r *run) make(t link.Token, first, count int) []*fleet.Node {
	r.Helper()
	var out []*fleet.Node
	for i := range count {
		n, err := fleet.New(t, first+i)
		must(r, err)
		out = append(out, n)
	}
	return out
}

func (r *run) usage() fleet.Usage {
	r.Helper()
	u, err := r.plane.Usage()
	must(r, err)
	return u
}

// known is the nodes by their id, as the control plane lists them.
func (r *run) known() map[string]fleet.Known {
	r.Helper()
	ns, err := r.plane.Nodes(r.Context())
	must(r, err)
	out := map[string]fleet.Known{}
	for _, n := range ns {
		out[n.ID] = n
	}
	return out
}

// mark is a text that was in no declaration yet.
func (r *run) mark() string {
	r.marks++
	return fmt.Sprintf("mark %d of many\n", r.marks)
}

// allUp returns when every node of the crowd has a link.
func (r *run) allUp(limit time.Duration) {
	r.Helper()
	must(r, r.crowd.Await(limit, "all links are up", func() bool { return r.crowd.Up() == len(r.crowd.Nodes) }))
}

// of is a share of sorted durations: 0.5 the median, 1 the longest.
func of(share float64, ds []time.Duration) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	ds = slices.Sorted(slices.Values(ds))
	return ds[min(int(share*float64(len(ds))), len(ds)-1)]
}

func spread(ds []time.Duration) string {
	return fmt.Sprintf("p50 %s, p99 %s, last %s", round(of(.5, ds)), round(of(.99, ds)), round(of(1, ds)))
}

func round(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > 10*time.Millisecond:
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

func mib(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

// within is a context that ends after a while.
func (r *run) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(r.Context(), d)
	r.Cleanup(cancel)
	return ctx
}

// print prints the table.
func (r *run) print() {
	var b strings.Builder
	version, _ := r.plane.Ask(r.Context(), "version")
	fmt.Fprintf(&b, "\n%s, %d links, state of %d\n", strings.TrimSpace(version), *nodes, *whole)
	for _, row := range r.rows {
		fmt.Fprintf(&b, "%-52s %-24s %s\n", row[0], row[1], row[2])
	}
	fmt.Println(b.String())
}
