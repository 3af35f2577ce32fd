package process

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/resourcetest"
	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// conform holds a supervisor to the contract of Supervisor. define writes a
// definition for the name into the layout.
func conform(t *testing.T, l layout.Layout, s Supervisor, name string, define func()) {
	ctx, dir := t.Context(), filepath.Join(l.Processes(), name)
	t.Cleanup(func() {
		_ = s.Stop(context.Background(), name)
		_ = s.Forget(context.Background(), name)
	})
	do := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	pid := func() int {
		t.Helper()
		shim, err := supervise.Shim(dir)
		do("look for the shim", err)
		if shim == nil {
			return 0
		}
		defer shim.Close()
		return shim.PID
	}
	up := func() supervise.State {
		t.Helper()
		var state supervise.State
		do("wait for the process", watch(ctx, dir, func() (bool, error) {
			var err error
			state, err = supervise.ReadState(dir)
			return err == nil && state.Phase == supervise.Running && state.Shim.PID == pid(), nil
		}))
		return state
	}
	well := func(exists bool) {
		t.Helper()
		p, err := s.Look(name)
		do("Look", err)
		if p.Foreign != nil || len(p.Differences) != 0 || p.Exists && !exists {
			t.Fatalf("Look says %+v", p)
		}
	}

	// Nothing is there: stopping and forgetting it is done already.
	do("Stop", s.Stop(ctx, name))
	do("Forget", s.Forget(ctx, name))

	define()
	do("Ensure", s.Ensure(ctx, name))
	well(true)
	if pid() != 0 {
		t.Fatal("Ensure started the shim")
	}
	do("Start", s.Start(ctx, name))
	first := up()

	// Again: nothing happens to what is up.
	do("Ensure again", s.Ensure(ctx, name))
	do("Start again", s.Start(ctx, name))
	well(true)
	if now := up(); now.Shim != first.Shim || *now.Child != *first.Child {
		t.Fatalf("what was up was touched: it was %+v and is %+v", first, now)
	}

	do("Stop", s.Stop(ctx, name))
	if pid() != 0 {
		t.Error("the shim is still up after Stop")
	}
	if h, err := supervise.Find(*first.Child); h != nil || err != nil {
		t.Errorf("the process is still there after Stop (%v)", err)
	}
	do("Stop again", s.Stop(ctx, name))

	do("Start", s.Start(ctx, name))
	up()
	do("Stop", s.Stop(ctx, name))
	do("Forget", s.Forget(ctx, name))
	do("Forget again", s.Forget(ctx, name))
	if p, err := s.Look(name); err != nil || p.Exists || p.Foreign != nil {
		t.Errorf("after Forget Look says %+v, %v", p, err)
	}
	if pid() != 0 {
		t.Error("the shim came back")
	}
}

// define writes the definition of the kind's for a wish.
func define(t *testing.T, k *Kind, want resource.Want) func() {
	return func() {
		t.Helper()
		dir := k.dir(want.Resource.Process.Name)
		def, err := k.definition(want.Resource.Process)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, supervise.DefinitionFile), def.bytes, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDetachedConforms(t *testing.T) {
	l := layout.Layout{Root: t.TempDir()}
	prepare(t, l)
	k := newKind(l, Detached(l))
	conform(t, l, k.sup, "web", define(t, k, wish("live")))
}

// standIn is for the half of the systemd supervisor that is files: it keeps a
// shim up as little as the detached one, and counts what systemd would be
// asked. The other half is tested inside a machine.
type standIn struct {
	detached
	reloads int
}

func (m *standIn) stale(context.Context, string) (bool, error) { return false, nil }
func (m *standIn) reload(context.Context) error                { m.reloads++; return nil }
func (m *standIn) start(ctx context.Context, unit string) error {
	if _, err := os.Stat(filepath.Join(m.layout.UnitDir(), unit)); err != nil {
		return err
	}
	name := strings.TrimSuffix(strings.TrimPrefix(unit, "nox-"), ".service")
	if _, err := os.Stat(filepath.Join(m.layout.Processes(), name)); err != nil {
		return nil // a stranger's unit
	}
	return m.Start(ctx, name)
}
func (m *standIn) stop(ctx context.Context, unit string) error {
	return m.Stop(ctx, strings.TrimSuffix(strings.TrimPrefix(unit, "nox-"), ".service"))
}

func withStandIn(l layout.Layout) systemd {
	return systemd{layout: l, manager: &standIn{detached: detached{l}}}
}

const strangers = "[Service]\nExecStart=/bin/strangers\n"

// strangersUnit lays an enabled unit of somebody else's in the way.
func strangersUnit(t *testing.T, l layout.Layout) {
	s := withStandIn(l)
	if err := os.MkdirAll(filepath.Dir(s.link("web")), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.unit("web"), []byte(strangers), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.unit("web"), s.link("web")); err != nil {
		t.Fatal(err)
	}
}

func TestKindWithUnitsKeepsThePromises(t *testing.T) {
	s := suite()
	s.New = func(_ *testing.T, l layout.Layout) resource.Kind { return newKind(l, withStandIn(l)) }
	s.Want = func(layout.Layout) resource.Want {
		w := wish("live")
		w.Resource.TakeOver = true
		return w
	}
	s.Before, s.Foreign = strangersUnit, strangersUnit
	s.Drifts["unit edited"] = func(t *testing.T, l layout.Layout) {
		if err := os.WriteFile(withStandIn(l).unit("web"), []byte(marker+"[Service]\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.Drifts["unit removed"] = func(t *testing.T, l layout.Layout) {
		if err := os.Remove(withStandIn(l).unit("web")); err != nil {
			t.Fatal(err)
		}
	}
	s.Drifts["disabled"] = func(t *testing.T, l layout.Layout) {
		if err := os.Remove(withStandIn(l).link("web")); err != nil {
			t.Fatal(err)
		}
	}
	resourcetest.Run(t, s)
}

func TestForeignUnitIsNotTouchedUnlessTakenOver(t *testing.T) {
	b := newBench(t, "live")
	b.kind.sup = withStandIn(b.l)
	strangersUnit(t, b.l)
	before := resourcetest.Snapshot(t, b.l.Root)
	err := b.kind.Apply(t.Context(), b.want, nil, b.check())
	if err == nil || !strings.Contains(err.Error(), `"nox-web.service" exists and is not ours`) {
		t.Errorf("Apply says %v", err)
	}
	before.Unchanged(t, b.l.Root)
}

func TestU01MaskedUnitIsForeignAndSaid(t *testing.T) {
	l := layout.Layout{Root: t.TempDir()}
	s := withStandIn(l)
	if err := os.MkdirAll(l.UnitDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", s.unit("web")); err != nil {
		t.Fatal(err)
	}
	p, err := s.Look("web")
	if err != nil || p.Foreign == nil || len(p.Differences) != 1 || !strings.Contains(p.Differences[0], "/dev/null") {
		t.Errorf("Look says %+v, %v", p, err)
	}
}

// A host of another version may have written another unit: it is replaced
// under the process, which does not notice.
func TestNewUnitTextRestartsNothingAndReloadsOnce(t *testing.T) {
	b := newBench(t, "live")
	s := withStandIn(b.l)
	b.kind.sup = s
	b.apply()
	b.started(1)
	before, reloads := *b.state().Child, s.manager.(*standIn).reloads
	if err := os.WriteFile(s.unit("web"), []byte(marker+"[Service]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if st := b.check(); st.Same || st.Foreign {
		t.Fatalf("%+v", st)
	}
	if st := b.apply(); !st.Same || *b.state().Child != before {
		t.Errorf("%+v, process %+v, was %+v", st, *b.state().Child, before)
	}
	if n := s.manager.(*standIn).reloads - reloads; n != 1 {
		t.Errorf("systemd was told to read its units again %d times, want once", n)
	}
}

func TestNothingDeclaredIsInTheUnit(t *testing.T) {
	got := string(systemd{layout: layout.Layout{}}.text("web"))
	const want = "# Written by mesh-host for a process it was told to run. Changes are undone.\n" + `[Unit]
Description=web, kept up by mesh-host
StartLimitIntervalSec=0
RequiresMountsFor=/var/lib/nox-mesh

[Service]
Type=exec
ExecStart=/var/lib/nox-mesh/launcher/mesh-host shim web
Restart=always
RestartSec=1
KillMode=mixed
TimeoutStopSec=2h
OOMPolicy=continue

[Install]
WantedBy=multi-user.target
`
	if got != want {
		t.Errorf("the unit is\n%s\nwant\n%s", got, want)
	}
}
