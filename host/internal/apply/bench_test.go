package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/file"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// machine is a process kind on a machine made of a map: what runs, and with
// which spec. It stands in for the shim where only the engine is tested.
type machine struct {
	runs  map[string]string
	log   []string
	fail  map[string]error // of Apply, by name
	lies  map[string]bool  // Apply returns nil and does nothing
	crash string           // Apply of this name does its work and the host is then killed
	kill  func()
}

func (m *machine) Check(_ context.Context, w resource.Want, prior *resource.Record) (resource.State, error) {
	spec, ok := m.runs[w.Resource.Process.Name]
	st := resource.State{Exists: ok, Same: ok && spec == string(w.Spec), Foreign: ok && prior == nil}
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
		m.kill()
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
	t       testing.TB
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

func newLab(t testing.TB) *lab {
	t.Helper()
	return labAt(t, t.TempDir())
}

func labAt(t testing.TB, root string) *lab {
	t.Helper()
	l := &lab{t: t, root: root, machine: &machine{runs: map[string]string{}, fail: map[string]error{}, lies: map[string]bool{}}}
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
	_, err := l.engine.Accept(l.t.Context(), store.Wanted{Source: store.SourceFile, Document: document(resources...)}, false)
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

// killed runs a pass in the middle of which the host is killed: nothing that it
// does after that is written down.
func (l *lab) killed() {
	l.machine.kill = func() { l.engine.Store.Close() }
	_, _ = l.engine.Reconcile(l.t.Context(), "killed", false)
}

// applied accepts and reconciles. What goes must go as the plan said.
func (l *lab) applied(resources ...string) string {
	l.t.Helper()
	plan, refused := l.engine.Plan(l.t.Context(), store.SourceFile, document(resources...))
	if err := l.accept(resources...); err != nil {
		l.t.Fatal(err)
	}
	got := l.pass()
	for _, s := range plan {
		want := map[Action]string{Remove: "removed " + s.Key, Release: "released " + s.Key + " (" + s.Note + ")"}[s.Action]
		if refused == nil && want != "" && s.Error == "" && !strings.Contains(got+" ", want) && !strings.Contains(got, "failed "+s.Key) && !strings.Contains(got, "skipped "+s.Key) {
			l.t.Errorf("the plan said %+v, and what came was\n%s", s, got)
		}
	}
	return got
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
