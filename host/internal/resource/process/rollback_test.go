package process

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/file"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// Programs. Each says that it was started.
const (
	goodProgram = "#!/bin/sh\necho good >>$NOX_ROOT/ran\nexec sleep 100000\n"
	nextProgram = "#!/bin/sh\necho next >>$NOX_ROOT/ran\nexec sleep 100000\n"
	badProgram  = "#!/bin/sh\necho bad >>$NOX_ROOT/ran\nexit 7\n"
)

// A mesh is a root with the engine and the two kinds of a program that is kept up,
// as the host has them.
type mesh struct {
	*testing.T
	l          layout.Layout
	content    *content.Store
	store      *store.Store
	kind       *Kind
	generation int
}

func newMesh(t *testing.T) *mesh {
	m := &mesh{T: t, l: layout.Layout{Root: t.TempDir()}}
	prepare(t, m.l)
	m.must(os.Remove(m.l.Path("/bin/child")))
	var err error
	if m.content, err = content.Open(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	m.store, err = store.Open(filepath.Join(t.TempDir(), "store.db"), clock.System, slog.New(slog.DiscardHandler))
	m.must(err)
	m.kind = quick(m.l, Detached(m.l))
	t.Cleanup(func() {
		if _, _, err := m.kind.Remove(context.Background(), resource.Record{Key: "process:web"}); err != nil {
			t.Error(err)
		}
		m.must(m.store.Close())
	})
	return m
}

// quick is a kind whose healthy minute is short, and yet much longer than it takes
// to fail.
func quick(l layout.Layout, s Supervisor) *Kind {
	k := New(Config{Layout: l, Supervisor: s})
	k.adjust = func(d *supervise.Definition) {
		d.Backoff, d.BackoffMax, d.Settle = 5*time.Millisecond, 10*time.Millisecond, 10*time.Millisecond
		d.Guard, d.Healthy = 20*time.Millisecond, time.Second
	}
	return k
}

func (m *mesh) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// Ensure implements apply.Content.
func (m *mesh) Ensure(_ context.Context, d digest.Digest) error {
	f, err := m.content.Open(d)
	if err == nil {
		f.Close()
	}
	return err
}

// engine is that of a host that was just started.
func (m *mesh) engine() *apply.Engine {
	k := quick(m.l, Detached(m.l))
	return &apply.Engine{
		Store: m.store, Content: m, Layout: m.l, Clock: clock.System, Log: slog.New(slog.DiscardHandler), Mesh: func() string { return "" },
		Kinds: map[declaration.Type]resource.Kind{
			declaration.TypeFile:    file.New(file.Config{Layout: m.l, Content: m.content, Failed: k.Failed, Restored: k.Restored}),
			declaration.TypeProcess: k,
		},
	}
}

// document declares the program and its process, or nothing.
func (m *mesh) document(program string) []byte {
	m.Helper()
	resources := ""
	if program != "" {
		d, _, err := m.content.Add(m.Context(), strings.NewReader(program), 1<<20)
		m.must(err)
		resources = fmt.Sprintf(`{"id": "program", "type": "file", "path": "/bin/program", "mode": "0755", "owner": "%d", "group": "%d", "source": %q},
			{"id": "web", "type": "process", "name": "web", "command": ["/bin/program"], "failure_limit": 3, "rollback": true, "after": ["program"], "restart_on": ["program"]}`,
			os.Geteuid(), os.Getegid(), d)
	}
	return fmt.Appendf(nil, `{"schema": 1, "name": "test", "generation": %d, "resources": [%s]}`, m.generation, resources)
}

// declare applies the program, by a host that was just started.
func (m *mesh) declare(program string) map[string]string {
	m.Helper()
	m.generation++
	_, err := m.engine().Accept(m.Context(), store.Wanted{Source: store.SourceFile, Document: m.document(program)}, false)
	m.must(err)
	return m.pass(false)
}

// pass makes one, by a host that was just started, and returns what became of each.
func (m *mesh) pass(again bool) map[string]string {
	m.Helper()
	report, err := m.engine().Reconcile(m.Context(), "test", again)
	m.must(err)
	out := map[string]string{}
	for _, r := range report.Resources {
		out[r.Key] = strings.TrimSpace(string(r.Outcome) + " " + r.Note + r.Error)
	}
	return out
}

func (m *mesh) dir() string { return m.kind.dir("web") }

// knows waits for what the shim knows.
func (m *mesh) knows(ok func(r supervise.Rollback) bool) {
	m.Helper()
	m.must(watch(m.Context(), m.dir(), func() (bool, error) {
		r, err := supervise.ReadRollback(m.dir())
		return err == nil && ok(r), nil
	}))
}

func (m *mesh) proven(program string) {
	m.Helper()
	m.knows(func(r supervise.Rollback) bool {
		return r.Good != nil && r.Good.Digest == digest.FromString(program).String()
	})
}

// rolledBack waits until the one before serves, and returns its shim's state.
func (m *mesh) rolledBack() supervise.State {
	m.Helper()
	m.knows(func(r supervise.Rollback) bool { return r.Back() })
	var s supervise.State
	m.must(watch(m.Context(), m.dir(), func() (bool, error) {
		var err error
		s, err = supervise.ReadState(m.dir())
		return err == nil && s.Phase == supervise.Running && s.Failures == 0, nil
	}))
	return s
}

func (m *mesh) holds(program string) {
	m.Helper()
	if got, err := os.ReadFile(m.l.Path("/bin/program")); err != nil || string(got) != program {
		m.Errorf("at the path is %q, %v; want %q", got, err, program)
	}
}

func (m *mesh) is(got map[string]string, key, want string) {
	m.Helper()
	if !regexp.MustCompile("^(?:" + want + ")$").MatchString(got[key]) {
		m.Errorf("%s is %q, want %q", key, got[key], want)
	}
}

var heldNote = `held sha256:[0-9a-f]{12}…: failed here 3 times as process "web" \(exited with 7\); held at the one before it until other content is declared`

func TestR03BadExecutableIsHeldUntilOtherContentIsDeclared(t *testing.T) {
	m := newMesh(t)
	got := m.declare(goodProgram)
	m.is(got, "file:/bin/program", "applied")
	m.is(got, "process:web", "applied")
	m.proven(goodProgram)

	got = m.declare(badProgram)
	m.is(got, "file:/bin/program", "applied")
	m.is(got, "process:web", "applied|failed exited with 7, .*")
	before := m.rolledBack()
	m.holds(goodProgram)

	// The same declaration three times more; then a person asks.
	for i := range 4 {
		got = m.pass(i == 3)
		m.is(got, "file:/bin/program", heldNote)
		// It is after what is held, and either goes on or is left alone.
		m.is(got, "process:web", `unchanged runs the executable before sha256:[0-9a-f]{12}…, which failed here 3 times: exited with 7 \(since .*\)`)
		m.holds(goodProgram)
	}
	steps, err := m.engine().Plan(t.Context(), store.SourceFile, m.document(badProgram))
	if err != nil || steps[0].Action != apply.Held || steps[0].Todo() || steps[1].Todo() {
		t.Errorf("a plan says %+v, %v", steps, err)
	}
	if now, err := supervise.ReadState(m.dir()); err != nil || now.Child == nil || *now.Child != *before.Child {
		t.Errorf("the process was touched: %+v, %v; it was %+v", now, err, before)
	}

	got = m.declare(nextProgram)
	m.is(got, "file:/bin/program", "applied")
	m.is(got, "process:web", "applied")
	m.holds(nextProgram)
	m.proven(nextProgram)
	if why := m.kind.Failed("/bin/program", digest.FromString(badProgram)); why != "" {
		t.Errorf("after other content has worked: %q", why)
	}
	got = m.pass(false)
	m.is(got, "file:/bin/program", "unchanged")
	m.is(got, "process:web", "unchanged")
	m.gone()
}

// gone declares nothing, and all of it is gone.
func (m *mesh) gone() {
	m.Helper()
	got := m.declare("")
	m.is(got, "file:/bin/program", "removed")
	m.is(got, "process:web", "removed")
	if left, err := os.ReadDir(m.l.Path("/bin")); err == nil && len(left) > 0 {
		m.Errorf("left beside the program: %v", left)
	}
	if left, err := os.ReadDir(m.l.Processes()); err == nil && len(left) > 0 {
		m.Errorf("left of the process: %v", left)
	}
}

func TestR03WhatWasPutBackIsRemovedAsOurOwn(t *testing.T) {
	m := newMesh(t)
	m.declare(goodProgram)
	m.proven(goodProgram)
	m.declare(badProgram)
	m.rolledBack()
	m.is(m.pass(false), "file:/bin/program", heldNote)
	m.gone()
}

// What was declared before it is no news; what is declared again after that is.
func TestR03WhatIsDeclaredAgainAfterOtherContentIsTriedAnew(t *testing.T) {
	m := newMesh(t)
	m.declare(goodProgram)
	m.proven(goodProgram)
	m.declare(badProgram)
	m.rolledBack()
	m.is(m.declare(goodProgram), "file:/bin/program", "unchanged")
	m.holds(goodProgram)
	m.is(m.declare(badProgram), "file:/bin/program", "applied")
	m.rolledBack()
	m.holds(goodProgram)
	m.is(m.pass(false), "file:/bin/program", heldNote)
}

// The words for a process that is halted.
func TestR11HaltedSaysWhyNothingWasPutBack(t *testing.T) {
	at := time.Date(2001, 9, 9, 12, 3, 0, 0, time.UTC)
	failed := []supervise.Failure{{Digest: digest.FromString(badProgram).String(), Failures: 5, LastExit: "exited with 7", At: at}}
	back := supervise.Rollback{Good: &supervise.Good{}, Failed: failed}
	m := newMesh(t)
	m.declare(goodProgram)
	m.proven(goodProgram)
	put, err := supervise.ReadRollback(m.dir())
	m.must(err)
	back.Put = &put.Good.From
	for name, c := range map[string]struct {
		known         supervise.Rollback
		phase         supervise.Phase
		failing, note string
	}{
		"nothing known": {supervise.Rollback{}, supervise.Halted, "exited with 1, halted after 5 failures in a row; mesh-host reconcile starts it again", ""},
		"its copy is gone": {supervise.Rollback{Unable: "its copy is gone"}, supervise.Halted,
			"exited with 1, halted after 5 failures in a row; the executable before it cannot be put back: its copy is gone; mesh-host reconcile starts it again", ""},
		"both": {back, supervise.Halted,
			"exited with 1, halted after 5 failures in a row; that is the executable before sha256:" + digest.FromString(badProgram).Encoded()[:12] + "…, put back when that failed as well (exited with 7); mesh-host reconcile starts it again", ""},
		"put back": {back, supervise.Running, "", "runs the executable before sha256:" + digest.FromString(badProgram).Encoded()[:12] + "…, which failed here 5 times: exited with 7 (since 2001-09-09 12:03:00)"},
	} {
		v := view{shim: true, wanted: true, known: c.known, stays: true}
		v.def.Rollback = true
		v.state = supervise.State{Phase: c.phase, LastExit: "exited with 1"}
		if c.phase == supervise.Halted {
			v.state.Failures = 5
		}
		if v.failing() != c.failing || c.failing == "" && v.note() != c.note {
			t.Errorf("%s: failing %q, note %q; want %q, %q", name, v.failing(), v.note(), c.failing, c.note)
		}
	}
}

// rollsBack holds a supervisor to what a process that may be rolled back is
// promised: it is the shim that does it, whoever keeps that up.
func rollsBack(t *testing.T, k *Kind, want resource.Want, program string) {
	name := want.Resource.Process.Name
	lay := func(content string) {
		t.Helper()
		temp := program + ".new"
		if err := os.WriteFile(temp, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temp, program); err != nil {
			t.Fatal(err)
		}
	}
	makeSo := func(restart bool) resource.State {
		t.Helper()
		want.Restart = restart
		st, err := k.Check(t.Context(), want, nil)
		if err == nil {
			err = k.Apply(t.Context(), want, nil, st)
		}
		if err == nil {
			st, err = k.Check(t.Context(), want, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	until := func(ok func(supervise.State, supervise.Rollback) bool) {
		t.Helper()
		err := watch(t.Context(), k.dir(name), func() (bool, error) {
			s, err := supervise.ReadState(k.dir(name))
			r, rerr := supervise.ReadRollback(k.dir(name))
			return err == nil && rerr == nil && ok(s, r), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	lay(goodProgram)
	if st := makeSo(false); !st.Same || st.Failing != "" {
		t.Fatalf("%+v", st)
	}
	until(func(_ supervise.State, r supervise.Rollback) bool { return r.Good != nil })
	lay(badProgram)
	makeSo(true)
	until(func(s supervise.State, r supervise.Rollback) bool {
		return r.Back() && s.Phase == supervise.Running && s.Failures == 0
	})
	if got, err := os.ReadFile(program); err != nil || string(got) != goodProgram {
		t.Errorf("at the path is %q, %v", got, err)
	}
	if st := makeSo(false); !st.Same || st.Failing != "" || !strings.HasPrefix(st.Note, "runs the executable before sha256:") {
		t.Errorf("%+v", st)
	}
	d := digest.FromString(badProgram)
	if why := k.Failed(want.Resource.Process.Command[0], d); why != fmt.Sprintf(`failed here 3 times as process %q (exited with 7)`, name) {
		t.Errorf("failed: %q", why)
	}
	if out, _, err := k.Remove(context.Background(), resource.Record{Key: want.Resource.Key()}); err != nil || out != declaration.Removed {
		t.Fatal(out, err)
	}
	if why := k.Failed(want.Resource.Process.Command[0], d); why != "" {
		t.Errorf("of a process that was removed: %q", why)
	}
	if !k.Restored(want.Resource.Process.Command[0], digest.FromString(goodProgram)) || k.Restored(want.Resource.Process.Command[0], d) {
		t.Error("what was put back is not known as our own")
	}
	if _, err := os.Lstat(k.dir(name)); !os.IsNotExist(err) {
		t.Errorf("its folder is there: %v", err)
	}
}

func TestR03DetachedRollsBack(t *testing.T) {
	l := layout.Layout{Root: t.TempDir()}
	prepare(t, l)
	want := wish()
	want.Resource.Process.Command, want.Resource.Process.Rollback = []string{"/bin/program"}, true
	k := quick(l, Detached(l))
	t.Cleanup(func() { _, _, _ = k.Remove(context.Background(), resource.Record{Key: "process:web"}) })
	rollsBack(t, k, want, l.Path("/bin/program"))
}
