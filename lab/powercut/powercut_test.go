//go:build machine

package powercut

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// ahead is how many declarations a machine has: it is cut before it is through.
const ahead = 4

// A lab is a disk, and what the machines boot with that have it.
type lab struct {
	t                  *testing.T
	kernel, home, disk string
	software           []byte
	host               string
}

func newLab(t *testing.T) *lab {
	needs(t)
	home := newHome(t)
	l := &lab{t: t, kernel: kernel(t), home: home}
	l.software, l.host = software(t, home)
	l.disk = newDisk(t, home)
	return l
}

// boot starts a machine that applies the generations from first on.
func (l *lab) boot(first uint64, options ...string) *vm {
	l.t.Helper()
	file := filepath.Join(l.home, "initrd")
	initrd(l.t, file, l.software, first, ahead)
	return boot(l.t, l.kernel, file, l.disk, append(options, fmt.Sprintf("nox.first=%d", first))...)
}

// number is that of an environment variable.
func number(t *testing.T, name string, or uint64) uint64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return or
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestH01PowerCutsLeaveOldOrNewFilesAndAStoreThatAgrees cuts the power at random
// moments of an apply.
func TestH01PowerCutsLeaveOldOrNewFilesAndAStoreThatAgrees(t *testing.T) {
	l := newLab(t)
	var fresh [8]byte
	_, _ = rand.Read(fresh[:]) // never fails
	seed := number(t, "NOX_POWERCUT_SEED", binary.BigEndian.Uint64(fresh[:]))
	t.Logf("NOX_POWERCUT_SEED=%d", seed)
	random := mathrand.New(mathrand.NewPCG(seed, 0))

	// How long an apply takes, of a machine that has nothing and of one that has
	// another generation.
	v := l.boot(1)
	began := v.await("applying", 1)
	first := v.await("done", 1).at - began.at
	began = v.await("applying", 2)
	next := v.await("done", 2).at - began.at
	t.Logf("an apply takes %v, the first %v", next.Round(time.Millisecond), first.Round(time.Millisecond))
	var total struct{ inside, mixed, done, old, new int }

	// may are the generations that the disk may be of, done those that the host
	// said it was done with, and latest the one that it is at.
	may, done, latest := []uint64{2}, []uint64{1, 2}, uint64(3)
	began = v.await("applying", latest)
	for i := range number(t, "NOX_POWERCUTS", 5) {
		span := next
		if i > 0 {
			if i%10 == 1 {
				l.disk = newDisk(t, l.home)
				may, done, latest, span = []uint64{0}, nil, 0, first
			}
			latest++
			// Every other machine writes to its disk only what it must, when it must.
			lazy := []string{"nox.lazy=1"}
			if i%2 == 0 {
				lazy = nil
			}
			v = l.boot(latest, lazy...)
			began = v.await("applying", latest)
		}
		may = append(may, latest)
		// A little more than it takes, so that some end before.
		moment := time.Duration(random.Int64N(int64(span + span/10)))
		v.runUntil(began.at + moment)
		v.cut()
		inside := true
		for _, e := range v.rest() {
			switch e.what {
			case "done":
				may, done, inside = []uint64{e.n}, append(done, e.n), false
				total.done++
			case "applying":
				may, latest, inside = append(may, e.n), e.n, true
			}
		}
		if inside {
			total.inside++
		}

		mounted(t, l.disk, func(root string) {
			left := judged(t, root, may)
			t.Logf("cut %d, after %d%% of an apply: of generations %d, %d things are old, %d new, %d the same in both; %d temporary files",
				i+1, 100*moment/span, may, left.Old, left.New, left.Same, len(left.Leftovers))
			total.old, total.new = total.old+left.Old, total.new+left.New
			if left.Old > 0 && left.New > 0 {
				total.mixed++
			}
			if i%3 == 2 && !t.Failed() {
				return // the machine comes back, and is cut again while it recovers
			}
			h := host{t, l.host, root}
			h.recorded(latest)
			h.apply(latest)
			settled := judged(t, root, []uint64{latest})
			for _, p := range settled.Leftovers {
				t.Errorf("%s is left", p)
			}
			h.agrees(Of(latest), done)
			if i%5 == 0 {
				for _, r := range h.apply(latest).Resources {
					if r.Outcome != "unchanged" {
						t.Errorf("a second apply: %s is %s %s", r.Key, r.Outcome, r.Error)
					}
				}
			}
			may = []uint64{latest}
		})
		if t.Failed() {
			t.Fatalf("after cut %d; the console of the machine:\n%s", i+1, v.console())
		}
	}
	t.Logf("%d cuts were inside an apply, %d left some things old and some new, %d applies ended before; %d old and %d new in all",
		total.inside, total.mixed, total.done, total.old, total.new)
	if total.inside == 0 {
		t.Error("no cut was inside an apply: nothing was tested")
	}
}

// judged judges the disk by the generations that it may be of; a fault fails
// the test.
func judged(t *testing.T, root string, may []uint64) Verdict {
	t.Helper()
	v := verdict(t, root, may)
	for i, f := range v.Faults {
		if i == 20 {
			t.Errorf("… %d faults in all", len(v.Faults))
			break
		}
		t.Error(f)
	}
	return v
}

func verdict(t *testing.T, root string, may []uint64) Verdict {
	t.Helper()
	trees := make([]Tree, len(may))
	for i, n := range may {
		trees[i] = Of(n)
	}
	v, err := Judge(root, trees...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestH01WithoutSyncsAPowerCutIsFound is the same host with what makes files
// durable taken away: the verdict can be a bad one.
func TestH01WithoutSyncsAPowerCutIsFound(t *testing.T) {
	l := newLab(t)
	v := l.boot(1, "nox.lazy=1", "nox.unsynced="+cmp.Or(os.Getenv("NOX_POWERCUT_UNSYNCED"), "fsync,fdatasync,syncfs,sync,msync"))
	v.await("applying", 1)
	v.await("done", 1)
	v.cut()
	mounted(t, l.disk, func(root string) {
		got := verdict(t, root, []uint64{1})
		if len(got.Faults) < Files/2 {
			t.Errorf("only %d faults: what was not synced was not lost, or is not found: %q", len(got.Faults), got.Faults)
			return
		}
		t.Logf("%d faults, such as: %s", len(got.Faults), got.Faults[len(got.Faults)/2])
	})
}
