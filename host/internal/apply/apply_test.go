package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/file"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// machine is a process kind on a machine made of a map: what runs, and with
// which spec. It stands in for the shim where only the engine is tested.
type machine struct {
	runs  map[string]string
	log   []string
	fail  map[string]error // of Apply, by name
	lies  map[string]bool  // Apply returns nil and does nothing
	crash string           // Apply of this name does its work and is then killed
}

func (m *machine) Check(_ context.Context, w resource.Want, prior *resource.Record) (resource.State, error) {
	spec, ok := m.runs[w.Resource.Process.Name]
	st := resource.State{Exists: ok, Same: ok && spec == string(w.Spec) && !w.Restart, Foreign: ok && prior == nil}
	if ok {
		st.Found, _ = json.Marshal(spec)
	}
	if !st.Same {
		st.Differences = []string{"definition"}
	}
	return st, nil
}

func (m *machine) Apply(_ context.Context, w resource.Want, _ *resource.Record, _ resource.State) error {
	n := w.Resource.Process.Name
	m.log = append(m.log, "start "+n)
	if m.fail[n] != nil {
		return m.fail[n]
	}
	if !m.lies[n] {
		m.runs[n] = string(w.Spec)
	}
	if m.crash == n {
		runtime.Goexit() // as a SIGKILL: nothing more of the pass happens
	}
	return nil
}

func (m *machine) Remove(_ context.Context, r resource.Record) (declaration.Outcome, string, error) {
	n := strings.TrimPrefix(r.Key, "process:")
	m.log = append(m.log, "stop "+n)
	delete(m.runs, n)
	return declaration.Removed, "", nil
}

type lab struct {
	t       *testing.T
	root    string
	engine  *Engine
	machine *machine
	mesh    string
}

type here struct{ *content.Store }

func (h here) Ensure(_ context.Context, d digest.Digest) error {
	if h.Has(d, -1) {
		return nil
	}
	return errors.New("no such content")
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, root: t.TempDir(), machine: &machine{runs: map[string]string{}, fail: map[string]error{}, lies: map[string]bool{}}}
	lay := layout.Layout{Root: l.root}
	if err := os.MkdirAll(lay.HostState(), 0o700); err != nil {
		t.Fatal(err)
	}
	blobs, err := content.Open(lay.Content())
	if err != nil {
		t.Fatal(err)
	}
	l.engine = &Engine{
		Content: here{blobs}, Layout: lay, Clock: clock.At(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), Log: slog.New(slog.DiscardHandler),
		Mesh: func() string { return l.mesh }, Version: "1.0.0",
		Kinds: map[declaration.Type]resource.Kind{
			declaration.TypeFile:    file.New(file.Config{Layout: lay, Content: blobs}),
			declaration.TypeProcess: l.machine,
		},
	}
	l.restart()
	return l
}

// restart is the host killed and started again.
func (l *lab) restart() {
	l.t.Helper()
	if l.engine.Store != nil {
		l.engine.Store.Close()
	}
	s, err := store.Open(l.engine.Layout.HostStore(), l.engine.Clock, l.engine.Log)
	if err != nil {
		l.t.Fatal(err)
	}
	l.engine.Store = s
	l.t.Cleanup(func() { s.Close() })
}

func (l *lab) accept(resources ...string) error {
	_, err := l.engine.Accept(store.Wanted{Source: store.SourceFile, Document: document(resources...)}, false)
	return err
}

func document(resources ...string) []byte {
	return []byte(`{"schema": 1, "name": "lab", "resources": [` + strings.Join(resources, ",") + `]}`)
}

// pass reconciles and returns "OUTCOME KEY" lines.
func (l *lab) pass() string {
	l.t.Helper()
	r, err := l.engine.Reconcile(l.t.Context(), "test", false)
	if err != nil {
		l.t.Fatal(err)
	}
	var out []string
	for _, x := range r.Resources {
		line := fmt.Sprintf("%s %s", x.Outcome, x.Key)
		if s := strings.TrimSpace(x.Error + " " + x.Note); s != "" {
			line += " (" + s + ")"
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// killed runs a pass that does not come to its end.
func (l *lab) killed() {
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = l.engine.Reconcile(l.t.Context(), "killed", false) })
	wg.Wait()
}

func (l *lab) applied(resources ...string) string {
	l.t.Helper()
	if err := l.accept(resources...); err != nil {
		l.t.Fatal(err)
	}
	return l.pass()
}

func (l *lab) want(got string, lines ...string) {
	l.t.Helper()
	if w := strings.Join(lines, "\n"); got != w {
		l.t.Errorf("got\n%s\nwant\n%s", got, w)
	}
}

func aFile(id, path, text string) string {
	return fmt.Sprintf(`{"id": %q, "type": "file", "path": %q, "content": %q}`, id, path, text)
}

func aProcess(id string, more string) string {
	return fmt.Sprintf(`{"id": %q, "type": "process", "name": %q, "command": ["/bin/x"]%s}`, id, id, more)
}

func (l *lab) read(path string) string {
	b, err := os.ReadFile(filepath.Join(l.root, path))
	if err != nil {
		return "(" + err.Error()[strings.LastIndex(err.Error(), ":")+2:] + ")"
	}
	return string(b)
}

func TestASecondPassWritesNothing(t *testing.T) {
	l := newLab(t)
	l.want(l.applied(aFile("a", "/etc/a", "1"), aProcess("p", "")), "applied file:/etc/a", "applied process:p")
	l.restart()
	l.want(l.pass(), "unchanged file:/etc/a", "unchanged process:p")
	if n := l.engine.Store.Writes(); n != 0 {
		t.Errorf("%d pages written to the store", n)
	}
}

func TestDriftIsRepairedAndSaid(t *testing.T) {
	l := newLab(t)
	l.applied(aFile("a", "/etc/a", "1"))
	if err := os.WriteFile(filepath.Join(l.root, "etc/a"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	l.want(l.pass(), "repaired file:/etc/a (drifted: content)")
	if got := l.read("etc/a"); got != "1" {
		t.Errorf("content %q", got)
	}
}

func TestWhatIsNoLongerDeclaredIsRemovedLastFirst(t *testing.T) {
	l := newLab(t)
	l.applied(aProcess("one", ""), aProcess("two", ""), aFile("a", "/etc/a", "1"))
	l.want(l.applied(aProcess("three", "")), "removed file:/etc/a", "removed process:two", "removed process:one", "applied process:three")
	if r, _ := l.engine.Store.Records(); len(r) != 1 {
		t.Errorf("%d records left", len(r))
	}
}

func TestAFailureFailsAloneAndWhatWaitsForItIsSkipped(t *testing.T) {
	l := newLab(t)
	l.machine.fail["bad"] = errors.New("cannot start it: no such thing")
	got := l.applied(aProcess("bad", ""), aProcess("child", `, "after": ["bad"]`), aProcess("grandchild", `, "after": ["child"]`), aProcess("other", ""))
	l.want(got,
		"failed process:bad (cannot start it: no such thing)",
		`skipped process:child (waits for "bad", which is failed)`,
		`skipped process:grandchild (waits for "child", which is skipped)`,
		"applied process:other")
	if r, _ := l.engine.Store.Records(); len(r) != 1 {
		t.Errorf("%d records: only what worked is owned", len(r))
	}
}

func TestSuccessIsWhatALookSays(t *testing.T) {
	l := newLab(t)
	l.machine.lies["p"] = true
	l.want(l.applied(aProcess("p", "")), "failed process:p (was applied and is still not as declared: definition)")
	if r, _ := l.engine.Store.Records(); len(r) != 0 {
		t.Errorf("recorded as owned: %+v", r)
	}
}

func TestWhatIsNotOursIsLeftAloneUnlessTakenOver(t *testing.T) {
	l := newLab(t)
	l.machine.runs["p"] = "somebody's"
	got := l.applied(aProcess("p", ""))
	if !strings.HasPrefix(got, "failed process:p (exists and is not ours") || len(l.machine.log) != 0 {
		t.Errorf("%s; %v", got, l.machine.log)
	}
	l.want(l.applied(aProcess("p", `, "take_over": true`)), "applied process:p")
	if r, _ := l.engine.Store.Records(); string(r[0].Before) != `"somebody's"` {
		t.Errorf("what was there before is lost: %s", r[0].Before)
	}
}

func TestWhatAlreadyIsAsDeclaredIsAdopted(t *testing.T) {
	l := newLab(t)
	if err := os.Mkdir(filepath.Join(l.root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.root, "etc/a"), []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	l.want(l.applied(aFile("a", "/etc/a", "1")), "adopted file:/etc/a")
	l.want(l.applied(), "released file:/etc/a (it was there before the host owned it)")
	if got := l.read("etc/a"); got != "1" {
		t.Errorf("content %q", got)
	}
}

func TestRestartOnHappensOncePerApply(t *testing.T) {
	l := newLab(t)
	p := aProcess("p", `, "restart_on": ["a", "b"]`)
	l.applied(aFile("a", "/etc/a", "1"), aFile("b", "/etc/b", "1"), p)
	l.machine.log = nil
	l.want(l.applied(aFile("a", "/etc/a", "2"), aFile("b", "/etc/b", "2"), p), "applied file:/etc/a", "applied file:/etc/b", "applied process:p")
	l.want(l.pass(), "unchanged file:/etc/a", "unchanged file:/etc/b", "unchanged process:p")
	if got := strings.Join(l.machine.log, " "); got != "start p" {
		t.Errorf("the process saw: %s", got)
	}
}

func TestARestartIsNotForgottenWhenTheHostIsKilledBeforeIt(t *testing.T) {
	l := newLab(t)
	p := aProcess("p", `, "restart_on": ["a"]`)
	l.applied(aFile("a", "/etc/a", "1"), p)
	l.machine.log = nil
	if err := l.accept(aFile("a", "/etc/a", "2"), p); err != nil {
		t.Fatal(err)
	}
	l.machine.crash = "p"
	l.killed()
	l.machine.crash = ""
	l.restart()
	l.want(l.pass(), "unchanged file:/etc/a", "applied process:p")
	if got := strings.Join(l.machine.log, " "); got != "start p start p" {
		t.Errorf("the process saw: %s", got)
	}
}

func TestKilledBetweenDoingAndRecordingThenUndeclared(t *testing.T) {
	l := newLab(t)
	if err := l.accept(aProcess("p", "")); err != nil {
		t.Fatal(err)
	}
	l.machine.crash = "p"
	l.killed()
	l.restart()
	l.want(l.applied(aFile("a", "/etc/a", "1")), "removed process:p", "applied file:/etc/a")
	if len(l.machine.runs) != 0 {
		t.Errorf("leaked: %v", l.machine.runs)
	}
}

func TestTheMeshTakesOverWithoutTouching(t *testing.T) {
	l := newLab(t)
	l.applied(aFile("a", "/etc/a", "1"), aProcess("p", `, "restart_on": ["a"]`))
	l.machine.log = nil
	l.mesh = "M"
	composed := document(aFile("cp/a", "/etc/a", "1"), strings.Replace(aProcess("p", `, "restart_on": ["cp/a"]`), `"id": "p"`, `"id": "cp/p"`, 1))
	if _, err := l.engine.Accept(store.Wanted{Source: store.SourceLink, Mesh: "M", Epoch: 1, Document: composed}, false); err != nil {
		t.Fatal(err)
	}
	l.want(l.pass(), "unchanged file:/etc/a", "unchanged process:p")
	if len(l.machine.log) != 0 {
		t.Errorf("the process saw: %v", l.machine.log)
	}
	r, _ := l.engine.Store.Records()
	if len(r) != 2 || r[0].Mesh != "M" || r[0].ID != "cp/a" || r[1].Epoch != 1 {
		t.Errorf("records: %+v", r)
	}
	l.want(l.pass(), "unchanged file:/etc/a", "unchanged process:p")
}

func TestAcceptRefusesAndKeepsTheOneInForce(t *testing.T) {
	l := newLab(t)
	l.mesh = "M"
	link := func(mesh string, epoch, generation uint64) error {
		doc := fmt.Sprintf(`{"schema": 1, "name": "n", "generation": %d, "resources": []}`, generation)
		_, err := l.engine.Accept(store.Wanted{Source: store.SourceLink, Mesh: mesh, Epoch: epoch, Document: []byte(doc)}, false)
		return err
	}
	if err := link("M", 2, 7); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"an older generation": link("M", 2, 6),
		"an older epoch":      link("M", 1, 9),
		"another mesh":        link("X", 3, 1),
		"a person":            l.accept(),
		"not a declaration": func() error {
			_, err := l.engine.Accept(store.Wanted{Source: store.SourceLink, Mesh: "M", Epoch: 9, Document: []byte("{")}, false)
			return err
		}(),
	} {
		if fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w, _ := l.engine.Store.Wanted(); w.Epoch != 2 || w.Generation != 7 {
		t.Errorf("in force: %+v", w)
	}
	if err := link("M", 3, 1); err != nil {
		t.Errorf("a new epoch begins a new count: %v", err)
	}
}

func TestDetoursToTheHostsOwnAreRefused(t *testing.T) {
	l := newLab(t)
	lay := l.engine.Layout
	for _, d := range []string{lay.UnitDir(), lay.Path("/srv")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unit := filepath.Join(lay.UnitDir(), layout.HostUnit)
	for _, err := range []error{
		os.WriteFile(unit, []byte("x"), 0o644),
		os.Symlink(lay.UnitDir(), lay.Path("/srv/units")), // out of the root, when read literally
		os.Symlink("/var/lib/nox-mesh/host", lay.Path("/srv/state")),
		os.Symlink("../etc/systemd/system", lay.Path("/srv/relative")),
		os.Link(unit, lay.Path("/srv/hard")),
		os.WriteFile(lay.TrustState(), []byte("x"), 0o600),
		os.Link(lay.TrustState(), lay.Path("/srv/trust")),
		os.Symlink("/srv", filepath.Join(lay.UnitDir(), "out")),
		os.Symlink("/srv/e.conf", filepath.Join(lay.UnitDir(), "e.conf")),
		os.Symlink("loop.conf", filepath.Join(lay.UnitDir(), "loop.conf")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"/srv/relative/mesh-host.service.d/x.conf", "/srv/state/store.db", "/srv/hard", "/srv/trust"} {
		err := l.accept(aFile("a", p, "mine"))
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "host's own") {
			t.Errorf("%s: %v", p, err)
		}
	}
	// What is there leads a unit out of systemd's directories.
	for _, target := range []string{"out/e.conf", "/etc/systemd/system/out/e.conf", "e.conf", "loop.conf"} {
		err := l.accept(aLink("a", "/etc/systemd/system/foo.service", target))
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "resources[0].target: ") {
			t.Errorf("%s: %v", target, err)
		}
	}
	if w, _ := l.engine.Store.Wanted(); w != nil {
		t.Errorf("accepted: %+v", w)
	}
	if err := l.accept(aLink("a", "/etc/systemd/system/foo.service", "bar.service"), aLink("b", "/etc/systemd/system/off.service", "/dev/null")); err != nil {
		t.Error(err)
	}
}

func aLink(id, path, target string) string {
	return fmt.Sprintf(`{"id":%q,"type":"file","path":%q,"target":%q}`, id, path, target)
}

// The detour is not there yet: the same declaration makes it.
func TestDetoursThatTheDeclarationMakesAreRefusedWhole(t *testing.T) {
	for name, resources := range map[string][]string{
		"a symlink to the state":        {aLink("l", "/opt/s2", "/var/lib/nox-mesh"), aFile("a", "/opt/s2/host/identity.json", "evil")},
		"the same, later in the list":   {aFile("a", "/opt/s2/nox-mesh/host/identity.json", "evil"), aLink("l", "/opt/s2", "/var/lib")},
		"two hops":                      {aLink("l", "/opt/v", "/var/lib"), aFile("a", "/opt/v/nox-mesh/launcher/mesh-host", "evil")},
		"a relative one":                {aLink("l", "/opt/v", "../var/lib"), aFile("a", "/opt/v/nox-mesh/content/x", "evil")},
		"links through links":           {aLink("k", "/opt/k", "/srv"), aLink("l", "/opt/k/l", "/var/lib"), aFile("a", "/srv/l/nox-mesh/x", "evil")},
		"to the directory of units":     {aLink("l", "/srv/u", "/etc/systemd"), aFile("a", "/srv/u/system/mesh-.service.d/x.conf", "[Service]")},
		"dots behind a link":            {aLink("l", "/opt/l", "/var/lib/app/x"), aLink("m", "/opt/m", "l/../../nox-mesh"), aFile("a", "/opt/m/x", "evil")},
		"a parent of the trust":         {aLink("l", "/opt/share", "/usr/local/share"), aLink("m", "/opt/share/nox-mesh", "/evil")},
		"a link to the state elsewhere": {aLink("l", "/opt/v", "/var/lib"), aLink("m", "/srv/s", "/opt/v/nox-mesh")},
		"units out of their directory":  {aLink("l", "/srv/u", "/etc/systemd"), aLink("m", "/srv/u/system.control", "/srv/ctl"), aFile("a", "/srv/ctl/mesh-.service.d/x.conf", "[Service]")},
		"a loop":                        {aLink("l", "/opt/a", "b"), aLink("m", "/opt/b", "a"), aFile("a", "/opt/a/x", "evil")},
	} {
		l := newLab(t)
		err := l.accept(append([]string{aFile("z", "/etc/z", "z")}, resources...)...)
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "the host's own") && !strings.Contains(err.Error(), "is no place of units") && name != "a loop" {
			t.Errorf("%s: %v", name, err)
		}
		if w, _ := l.engine.Store.Wanted(); w != nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestDeclaredLinksElsewhereAreAccepted(t *testing.T) {
	l := newLab(t)
	for _, p := range []string{"/opt", "/srv/data"} {
		if err := os.MkdirAll(l.engine.Layout.Path(p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.want(l.applied(aLink("l", "/opt/d", "/srv/data"), aFile("a", "/opt/d/x", "x"), aLink("n", "/opt/n", "nowhere/at/all")),
		"applied file:/opt/d", "applied file:/opt/d/x", "applied file:/opt/n")
	if got := l.read("/srv/data/x"); got != "x" {
		t.Errorf("%q", got)
	}
}

// What leads to the host's own comes to be after the declaration was accepted.
func TestADetourMadeAfterwardsFailsItsResourceAlone(t *testing.T) {
	l := newLab(t)
	lay := l.engine.Layout
	if err := os.MkdirAll(lay.Path("/opt/s"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.accept(aFile("a", "/opt/s/identity.json", "evil"), aFile("b", "/etc/b", "b")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(lay.Path("/opt/s")), os.Symlink("/var/lib/nox-mesh/host", lay.Path("/opt/s"))); err != nil {
		t.Fatal(err)
	}
	if got := l.pass(); !strings.Contains(got, "failed file:/opt/s/identity.json (") || !strings.Contains(got, "applied file:/etc/b") {
		t.Errorf("%s", got)
	}
	if _, err := os.Lstat(lay.HostIdentity()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was written: %v", err)
	}
}

func TestWhereAPathLeadsMustBeKnown(t *testing.T) {
	l := newLab(t)
	if err := os.MkdirAll(l.engine.Layout.Path("/opt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("self", l.engine.Layout.Path("/opt/self")); err != nil {
		t.Fatal(err)
	}
	if err := l.accept(aFile("a", "/opt/self/x", "x")); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "cannot tell where") {
		t.Errorf("%v", err)
	}
}

// On a merged /usr the host's binary has several names.
func TestTheHostsBinaryByAnotherNameStays(t *testing.T) {
	for _, detour := range []struct{ link, target, path, real string }{
		{"/bin", "usr/bin", "/bin/mesh-host", "/usr/bin/mesh-host"},
		{"/usr/sbin", "bin", "/usr/sbin/mesh-host", "/usr/bin/mesh-host"},
		{"/opt/b", "/usr/local/bin", "/opt/b/mesh-host", "/usr/local/bin/mesh-host"},
	} {
		l := newLab(t)
		lay := l.engine.Layout
		for _, p := range []string{"/usr/bin", "/usr/local/bin", "/opt", "/etc"} {
			if err := os.MkdirAll(lay.Path(p), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, err := range []error{
			os.Symlink(detour.target, lay.Path(detour.link)),
			os.WriteFile(lay.HostBinary("/usr"), []byte("older"), 0o755),
			os.WriteFile(lay.HostBinary("/usr/local"), []byte("older"), 0o755),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		l.applied(aFile("h", detour.path, "newer"))
		if got := l.read(detour.real); got != "newer" {
			t.Fatalf("%s: %q", detour.path, got)
		}
		l.want(l.applied(aFile("z", "/etc/z", "z")), "released file:"+detour.path+" (the host itself stays)", "applied file:/etc/z")
		if got := l.read(detour.real); got != "newer" {
			t.Errorf("%s: %q", detour.path, got)
		}
	}
}

func TestContentThatCannotBeHadFailsItsResourceBeforeAnythingIsTouched(t *testing.T) {
	l := newLab(t)
	d := digest.FromString("nowhere")
	got := l.applied(fmt.Sprintf(`{"id": "a", "type": "file", "path": "/etc/a", "source": %q}`, d), aFile("b", "/etc/b", "1"))
	l.want(got, "failed file:/etc/a (no such content)", "applied file:/etc/b")
	if open, _ := l.engine.Store.Intents(); len(open) != 0 {
		t.Errorf("an intent for what was never begun: %+v", open)
	}
}

func TestNothingIsTakenAwayWhileContentIsMissing(t *testing.T) {
	l := newLab(t)
	l.applied(aFile("old", "/etc/old", "1"))
	got := l.applied(fmt.Sprintf(`{"id": "a", "type": "file", "path": "/etc/a", "source": %q}`, digest.FromString("nowhere")))
	l.want(got, "skipped file:/etc/old (stays until all content of the new declaration is here)", "failed file:/etc/a (no such content)")
	if l.read("etc/old") != "1" {
		t.Error("it was taken away")
	}
}

func TestAnOlderDeclarationIsTakenWhenThatIsSaid(t *testing.T) {
	l := newLab(t)
	accept := func(generation int, older bool) error {
		doc := fmt.Sprintf(`{"schema": 1, "name": "n", "generation": %d, "resources": []}`, generation)
		_, err := l.engine.Accept(store.Wanted{Source: store.SourceBundle, Document: []byte(doc)}, older)
		return err
	}
	if err := accept(7, false); err != nil {
		t.Fatal(err)
	}
	if err := accept(6, false); fault.KindOf(err) != fault.Refused {
		t.Errorf("older: %v", err)
	}
	if err := accept(6, true); err != nil {
		t.Errorf("older, and said so: %v", err)
	}
}

func TestAPanicFailsItsResourceAlone(t *testing.T) {
	l := newLab(t)
	l.machine.runs = nil // a write to it panics
	got := l.applied(aProcess("p", ""), aFile("b", "/etc/b", "1"))
	l.want(got, "failed process:p (internal error: assignment to entry in nil map)", "applied file:/etc/b")
}

func TestPlanSaysWhatApplyWouldDo(t *testing.T) {
	l := newLab(t)
	p := aProcess("p", `, "restart_on": ["a"]`)
	l.applied(aFile("a", "/etc/a", "1"), aFile("gone", "/etc/gone", "1"), p)
	steps, err := l.engine.Plan(t.Context(), store.SourceFile, document(aFile("a", "/etc/a", "2"), aFile("new", "/etc/new", "1"), p))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		got = append(got, s.Action+" "+s.Key)
	}
	l.want(strings.Join(got, "\n"), "remove file:/etc/gone", "change file:/etc/a", "create file:/etc/new", "restart process:p")
	if l.read("etc/a") != "1" || l.read("etc/new") != "(no such file or directory)" {
		t.Error("plan changed something")
	}
}
