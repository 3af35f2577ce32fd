package process

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/resourcetest"
	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// prepare lays down the launcher copy and the program.
func prepare(t *testing.T, l layout.Layout) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{l.Launcher(), l.Path("/bin/child")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(exe, path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(l.UnitDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	// What the process writes is no part of what is looked at.
	for name, target := range map[string]string{"/starts": "/dev/null", "/quiet": ""} {
		if err := os.Symlink(cmp.Or(target, "yes"), l.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
}

func newKind(l layout.Layout, s Supervisor) *Kind {
	k := New(Config{Layout: l, Supervisor: s})
	k.adjust = func(d *supervise.Definition) {
		d.Backoff, d.BackoffMax, d.Settle = 5*time.Millisecond, time.Hour, 10*time.Millisecond
		d.Guard = 20 * time.Millisecond
	}
	return k
}

func wish(args ...string) resource.Want {
	p := &declaration.Process{
		Name: "web", Command: append([]string{"/bin/child"}, args...), User: "root",
		Restart: declaration.RestartAlways, Run: declaration.RunService, SuccessCodes: []int{0},
		StopSignal: "SIGTERM", StopTimeout: 10, FailureLimit: 3,
	}
	return resource.Want{Resource: declaration.Resource{ID: "web", Type: declaration.TypeProcess, Process: p}, Spec: json.RawMessage(`{}`)}
}

func suite() resourcetest.Suite {
	return resourcetest.Suite{
		New:     func(_ *testing.T, l layout.Layout) resource.Kind { return newKind(l, Detached(l)) },
		Prepare: prepare,
		Want:    func(layout.Layout) resource.Want { return wish("live") },
		Other:   func(layout.Layout) resource.Want { return wish("live", "otherwise") },
		Drifts: map[string]func(*testing.T, layout.Layout){
			"definition edited": func(t *testing.T, l layout.Layout) {
				path := filepath.Join(l.Processes(), "web", supervise.DefinitionFile)
				if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			"shim ended":  func(t *testing.T, l layout.Layout) { signalShim(t, l, syscall.SIGTERM) },
			"shim killed": func(t *testing.T, l layout.Layout) { signalShim(t, l, syscall.SIGKILL) },
		},
	}
}

func signalShim(t *testing.T, l layout.Layout, sig syscall.Signal) {
	t.Helper()
	shim, err := supervise.Shim(filepath.Join(l.Processes(), "web"))
	if err != nil || shim == nil {
		t.Fatalf("no shim: %v", err)
	}
	defer shim.Close()
	if err := shim.Signal(sig); err != nil {
		t.Fatal(err)
	}
	if err := shim.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestKindKeepsThePromises(t *testing.T) { resourcetest.Run(t, suite()) }

// A bench is a root with the kind over the detached supervisor.
type bench struct {
	*testing.T
	l    layout.Layout
	kind *Kind
	want resource.Want
}

func newBench(t *testing.T, args ...string) *bench {
	l := layout.Layout{Root: t.TempDir()}
	prepare(t, l)
	for _, name := range []string{"/starts", "/quiet"} {
		if err := os.Remove(l.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{T: t, l: l, kind: newKind(l, Detached(l)), want: wish(args...)}
	t.Cleanup(func() {
		if _, _, err := b.kind.Remove(context.Background(), resource.Record{Key: "process:web"}); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) check() resource.State {
	b.Helper()
	st, err := b.kind.Check(b.Context(), b.want, nil)
	if err != nil {
		b.Fatal(err)
	}
	return st
}

func (b *bench) apply() resource.State {
	b.Helper()
	if err := b.kind.Apply(b.Context(), b.want, nil, b.check()); err != nil {
		b.Fatal(err)
	}
	b.want.Restart = false
	return b.check()
}

func (b *bench) state() supervise.State {
	b.Helper()
	s, err := supervise.ReadState(b.kind.dir("web"))
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func (b *bench) starts() int {
	content, _ := os.ReadFile(b.l.Path("/starts"))
	return strings.Count(string(content), "\n")
}

// started waits until the process came up n times.
func (b *bench) started(n int) {
	b.Helper()
	if err := watch(b.Context(), b.l.Root, func() (bool, error) { return b.starts() >= n, nil }); err != nil {
		b.Fatal(err)
	}
	if b.starts() != n {
		b.Errorf("%d starts, want %d", b.starts(), n)
	}
}

func (b *bench) await(ok func(supervise.State) bool) {
	b.Helper()
	err := watch(b.Context(), b.kind.dir("web"), func() (bool, error) {
		s, err := supervise.ReadState(b.kind.dir("web"))
		return err == nil && ok(s), nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func TestR03FailingProcessIsNoDriftAndSaysWhy(t *testing.T) {
	b := newBench(t, "1")
	b.kind.adjust = func(d *supervise.Definition) { d.Backoff, d.BackoffMax = time.Hour, time.Hour }
	st := b.apply()
	if want := "exited with 1, 1 failure, backing off"; !st.Same || st.Failing != want {
		t.Fatalf("%+v, want Same and %q", st, want)
	}
	// A second pass does not start the back-off anew.
	before := b.state()
	if st := b.apply(); !st.Same || b.starts() != 1 || b.state() != before {
		t.Errorf("after another pass: %+v, %d starts, state %+v; it was %+v", st, b.starts(), b.state(), before)
	}
}

// It runs as declared, and does not do what it is for, whatever its exit code.
func TestR03ProcessThatDoesNotStayUpIsNotFine(t *testing.T) {
	b := newBench(t, "0")
	b.kind.adjust = func(d *supervise.Definition) { d.Backoff, d.BackoffMax = time.Hour, time.Hour }
	st := b.apply()
	if want := "does not stay up: exited with 0, ended early once, backing off"; !st.Same || st.Failing != want {
		t.Fatalf("%+v, want Same and %q", st, want)
	}
	// A second pass does not start the back-off anew.
	before := b.state()
	if st := b.apply(); !st.Same || b.starts() != 1 || b.state() != before {
		t.Errorf("after another pass: %+v, %d starts, state %+v; it was %+v", st, b.starts(), b.state(), before)
	}
	for _, c := range []struct {
		phase         supervise.Phase
		short         int
		failing, note string
	}{
		{supervise.Starting, 3, "does not stay up: exited with 0, ended early 3 times in a row, starting again", ""},
		{supervise.Running, 3, "", "up since 15:04:05 after it ended early 3 times in a row; the last: exited with 0"},
		{supervise.Backoff, 0, "", "exited with 0"}, // after a long life
	} {
		s := before
		s.Phase, s.Short, s.Since = c.phase, c.short, time.Date(2001, 9, 9, 15, 4, 5, 0, time.UTC)
		v := view{shim: true, wanted: true, state: s}
		if v.failing() != c.failing || v.note() != c.note {
			t.Errorf("%s after %d: failing %q, note %q; want %q, %q", c.phase, c.short, v.failing(), v.note(), c.failing, c.note)
		}
	}
}

func TestR03HaltedProcessStaysDownUntilItIsChanged(t *testing.T) {
	b := newBench(t, "1")
	b.apply()
	b.await(func(s supervise.State) bool { return s.Phase == supervise.Halted })
	if st := b.apply(); !st.Same || st.Failing != "exited with 1, halted after 3 failures in a row; mesh-host reconcile starts it again" || b.starts() != 3 {
		t.Fatalf("%+v after %d starts", st, b.starts())
	}
	b.want.Restart = true
	b.apply()
	b.await(func(s supervise.State) bool { return s.Phase == supervise.Halted })
	if b.starts() != 6 {
		t.Errorf("%d starts, want 6", b.starts())
	}
	b.want = wish("live")
	if st := b.apply(); !st.Same || st.Failing != "" || st.Note != "" {
		t.Errorf("mended: %+v", st)
	}
}

func TestR09MissingProgramIsAFailureNotAnError(t *testing.T) {
	b := newBench(t, "live")
	b.want.Resource.Process.Command[0] = "/bin/nowhere"
	b.kind.adjust = func(d *supervise.Definition) { d.Backoff, d.BackoffMax = time.Hour, time.Hour }
	st := b.apply()
	if want := `cannot start "/bin/nowhere": no such file or directory, 1 failure, backing off`; st.Failing != want {
		t.Errorf("%+v, want %q", st, want)
	}
}

func TestOnceIsAppliedWhenItHasCompleted(t *testing.T) {
	b := newBench(t, "0")
	b.want.Resource.Process.Run = declaration.RunOnce
	if st := b.apply(); !st.Same || st.Failing != "" || b.starts() != 1 {
		t.Fatalf("%+v after %d starts", st, b.starts())
	}
	// Its shim is not needed any more, and not missed.
	signalShim(t, b.l, syscall.SIGTERM)
	if st := b.apply(); !st.Same || b.starts() != 1 {
		t.Fatalf("without its shim: %+v after %d starts", st, b.starts())
	}
	b.want.Restart = true
	if st := b.apply(); !st.Same || b.starts() != 2 {
		t.Fatalf("what it depends on changed: %+v after %d starts", st, b.starts())
	}
}

func TestOnceThatIsStillRunningIsWaitedForAndNotStartedAgain(t *testing.T) {
	b := newBench(t, "live") // until SIGUSR1
	b.want.Resource.Process.Run = declaration.RunOnce
	define(t, b.kind, b.want)()
	if err := b.kind.sup.Start(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	b.await(func(s supervise.State) bool { return s.Phase == supervise.Running })
	for range 2 {
		outOfTime, cancel := context.WithCancel(t.Context())
		cancel()
		err := b.kind.Apply(outOfTime, b.want, nil, b.check())
		if err == nil || !strings.Contains(err.Error(), "it runs once and has not ended yet") {
			t.Fatalf("Apply says %v", err)
		}
	}
	b.started(1)
	if st := b.check(); st.Same {
		t.Errorf("not completed, and Check says %+v", st)
	}
	if err := syscall.Kill(b.state().Child.PID, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if st := b.apply(); !st.Same || b.starts() != 1 {
		t.Errorf("%+v after %d starts", st, b.starts())
	}
}

func TestRestartKeepsNothingOfTheOldProcess(t *testing.T) {
	b := newBench(t, "live")
	b.apply()
	b.started(1)
	old := b.state()
	b.want.Restart = true
	b.apply()
	if h, err := supervise.Find(*old.Child); h != nil || err != nil {
		t.Errorf("the old process is still there (%v)", err)
	}
	b.started(2)
}

// another host, a new one, finds what runs.
func TestR02NewHostFindsTheProcess(t *testing.T) {
	b := newBench(t, "live")
	b.apply()
	b.started(1)
	before := *b.state().Child
	b.kind = newKind(b.l, Detached(b.l))
	if st := b.apply(); !st.Same || *b.state().Child != before {
		t.Errorf("%+v, process %+v, was %+v", st, b.state().Child, before)
	}
}

// two hosts that apply at once, or one that was killed in the middle.
func TestR02TwoStartsAreOneProcess(t *testing.T) {
	b := newBench(t, "live")
	b.apply()
	b.started(1)
	for range 3 {
		if err := b.kind.sup.Start(t.Context(), "web"); err != nil {
			t.Fatal(err)
		}
	}
	signalShim(t, b.l, syscall.SIGTERM)
	if b.starts() != 1 {
		t.Errorf("%d starts, want 1", b.starts())
	}
}

// the state names a PID that is a stranger's now.
func TestR01RemoveNeverSignalsAStranger(t *testing.T) {
	b := newBench(t, "live")
	b.apply()
	s := b.state()
	signalShim(t, b.l, syscall.SIGTERM)
	// The stranger is this test: signalled, it would end.
	s.Phase, s.Shim.PID, s.Child = supervise.Running, os.Getpid(), &supervise.Proc{PID: os.Getpid(), Start: 1, Boot: s.Shim.Boot}
	writeState(t, b.kind.dir("web"), s)
	if st := b.check(); st.Same {
		t.Errorf("a stranger passes for the shim: %+v", st)
	}
	if _, _, err := b.kind.Remove(t.Context(), resource.Record{Key: "process:web"}); err != nil {
		t.Fatal(err)
	}
}

func TestR02RemoveEndsAProcessWhoseShimWasKilled(t *testing.T) {
	b := newBench(t, "live")
	b.apply()
	s := b.state()
	signalShim(t, b.l, syscall.SIGKILL)
	if st, err := b.kind.Check(t.Context(), b.want, nil); err != nil || st.Same || strings.Join(st.Differences, "") != "runs, and its shim, which looks after it, does not" {
		t.Errorf("%+v, %v", st, err)
	}
	if out, _, err := b.kind.Remove(t.Context(), resource.Record{Key: "process:web"}); err != nil || out != declaration.Removed {
		t.Fatal(out, err)
	}
	if h, err := supervise.Find(*s.Child); h != nil || err != nil {
		t.Errorf("the process is still there (%v)", err)
	}
}

func TestUnknownUserIsSaidBeforeAnythingIsTouched(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("every process is this user's own: no user is looked up")
	}
	b := newBench(t, "live")
	b.want.Resource.Process.User = "nobody-of-that-name"
	if _, err := b.kind.Check(t.Context(), b.want, nil); err == nil || !strings.Contains(err.Error(), `cannot look up user "nobody-of-that-name"`) {
		t.Errorf("Check says %v", err)
	}
}

func TestAHostThatIsNotRootsRunsEveryProcessAsItself(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can become anybody")
	}
	b := newBench(t, "live")
	b.want.Resource.Process.User = "842"
	d, err := b.kind.definition(b.want.Resource.Process)
	if err != nil || int(d.UID) != os.Geteuid() || int(d.GID) != os.Getegid() {
		t.Errorf("user 842 runs as %d:%d, %v", d.UID, d.GID, err)
	}
}

func TestFolderOfTheShimIsTheLayouts(t *testing.T) {
	l := layout.Layout{Root: "/r"}
	if got, want := supervise.Folder("/r", "web"), filepath.Join(l.Processes(), "web"); got != want {
		t.Errorf("the shim reads %q, the host writes %q", got, want)
	}
}

func TestMachineWithoutSystemdGetsTheDetachedSupervisor(t *testing.T) {
	s, reason := Choose(layout.Layout{Root: t.TempDir()})
	if _, ok := s.(detached); !ok || reason == "" {
		t.Errorf("chose %T because %q", s, reason)
	}
}
