package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// refusing is a container runtime that refuses what it is asked to run, and counts.
type refusing struct {
	asked int
	err   error
	runs  string
}

func (r *refusing) Check(_ context.Context, w resource.Want, _ *resource.Record) (resource.State, error) {
	return resource.State{Exists: r.runs != "", Same: r.runs == string(w.Spec), Differences: []string{"image"}}, nil
}

func (r *refusing) Apply(_ context.Context, w resource.Want, _ *resource.Record, _ resource.State) error {
	if r.asked++; r.err == nil {
		r.runs = string(w.Spec)
	}
	return r.err
}

func (r *refusing) Remove(context.Context, resource.Record) (declaration.Outcome, string, error) {
	r.runs = ""
	return declaration.Removed, "", nil
}

func aContainer(args string) string {
	return fmt.Sprintf(`{"id": "web", "type": "container", "name": "web", "image": "registry.example/web@sha256:%064d", "args": [%s]}`, 1, args)
}

func TestWhatFailsAndCostsSomethingIsNotTriedAtEachPass(t *testing.T) {
	l := newLab(t)
	runtime := &refusing{err: errors.New("no such program")}
	l.engine.Kinds[declaration.TypeContainer] = runtime
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	pass := func(after time.Duration) string {
		now = now.Add(after)
		l.engine.Clock = clock.At(now)
		return l.pass()
	}
	tries := func(n int) {
		t.Helper()
		if runtime.asked != n {
			t.Errorf("it was tried %d times, want %d", runtime.asked, n)
		}
	}
	said := "failed container:web (no such program; tried once, and not again before 2030-01-01T00:00:30Z unless asked (mesh-host reconcile))"
	l.want(l.applied(aContainer("")), said)
	for range 10 {
		l.want(pass(time.Second), said)
	}
	tries(1)
	steps, err := l.engine.Plan(t.Context(), store.SourceFile, document(aContainer("")))
	if err != nil || "failed container:web ("+steps[0].Error+")" != said {
		t.Errorf("the plan says %+v, %v", steps, err)
	}
	// In a day of a pass each minute it is tried less and less.
	for range 24 * 60 {
		pass(time.Minute)
	}
	if runtime.asked < 24 || runtime.asked > 32 {
		t.Errorf("in a day it was tried %d times", runtime.asked)
	}
	// A person asks, or it is declared otherwise.
	n := runtime.asked
	if _, err := l.engine.Reconcile(t.Context(), "asked", true); err != nil {
		t.Fatal(err)
	}
	tries(n + 1)
	if got := l.applied(aContainer(`"other"`)); !strings.Contains(got, "no such program; tried once, and not again before") {
		t.Error(got)
	}
	tries(n + 2)
	// One that works for a moment only has failed no less.
	runtime.err = nil
	l.want(pass(time.Minute), "applied container:web")
	runtime.runs, runtime.err = "", errors.New("killed")
	if got := pass(time.Second); !strings.Contains(got, "killed; tried 2 times, and") {
		t.Error(got)
	}
	// Once it stands, what was is forgotten, and it comes back at once.
	runtime.err = nil
	l.want(pass(time.Hour), "repaired container:web (drifted: image)")
	l.want(pass(time.Second), "unchanged container:web")
	runtime.runs = ""
	l.want(pass(time.Second), "repaired container:web (drifted: image)")
	l.want(pass(time.Second), "unchanged container:web")
	runtime.runs, runtime.err = "", errors.New("killed")
	if got := pass(time.Second); !strings.Contains(got, "killed; tried once, and") {
		t.Error(got)
	}
}

func TestWhatCostsNothingIsTriedAtEachPass(t *testing.T) {
	l := newLab(t)
	l.machine.fail["p"] = errors.New("no")
	l.want(l.applied(aProcess("p", "")), "failed process:p (no)")
	l.want(l.pass(), "failed process:p (no)")
	if len(l.machine.log) != 2 {
		t.Errorf("%q", l.machine.log)
	}
}

// readOnly makes the state read-only, until writable is called or the test ends.
func (l *lab) readOnly() (writable func()) {
	l.t.Helper()
	dir := l.engine.Layout.HostState()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		l.t.Skipf("nothing can be mounted here: %v", err)
	}
	l.t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			l.t.Error(err)
		}
	})
	remount := func(flags uintptr) {
		l.t.Helper()
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|flags, ""); err != nil {
			l.t.Fatal(err)
		}
	}
	l.engine.Store.Close()
	remount(unix.MS_RDONLY)
	return func() { l.t.Helper(); remount(0) }
}

// What was never asked of the runtime has cost nothing, and is asked at once when it
// can be.
func TestWhatIsNotTriedForAReadOnlyStoreIsNotPaused(t *testing.T) {
	l := newLab(t)
	runtime := &refusing{}
	l.engine.Kinds[declaration.TypeContainer] = runtime
	if err := l.accept(aContainer("")); err != nil {
		t.Fatal(err)
	}
	writable := l.readOnly()
	l.restart()
	var said []string
	for range 10 {
		said = append(said, l.pass())
	}
	writable()
	for _, got := range said {
		if !strings.Contains(got, "failed container:web (cannot record an intent in the store") || strings.Contains(got, "tried") {
			t.Error(got)
		}
	}
	if runtime.asked != 0 {
		t.Errorf("it was tried %d times", runtime.asked)
	}
	l.want(l.pass(), "applied container:web")
}

func TestWhatSomebodyIsAtIsNotPaused(t *testing.T) {
	l := newLab(t)
	runtime := &refusing{}
	l.engine.Kinds[declaration.TypeContainer] = runtime
	if err := l.accept(aContainer("")); err != nil {
		t.Fatal(err)
	}
	p := l.engine.newPass()
	if err := p.load(); err != nil {
		t.Fatal(err)
	}
	web := p.task(&p.declared.Resources[0])
	if err := l.engine.begin(web.key); err != nil {
		t.Fatal(err)
	}
	p.act(t.Context(), []*task{web})
	if err := l.engine.pause(web); runtime.asked != 0 || err == nil || strings.Contains(err.Error(), "tried") {
		t.Errorf("tried %d times: %v", runtime.asked, err)
	}
	l.engine.end(web.key)
	l.want(l.pass(), "applied container:web")
}

// One that never worked has no record, and is forgotten no less when it goes.
func TestWhatIsDeclaredNoMoreIsNotPausedWhenItComesBack(t *testing.T) {
	l := newLab(t)
	runtime := &refusing{err: errors.New("no such program")}
	l.engine.Kinds[declaration.TypeContainer] = runtime
	for range 2 {
		if got := l.applied(aContainer("")); !strings.Contains(got, "no such program; tried once, and") {
			t.Error(got)
		}
		l.want(l.applied(), "")
	}
	if runtime.asked != 2 {
		t.Errorf("it was tried %d times", runtime.asked)
	}
}
