package unit

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// host is the engine with this kind.
type host struct {
	t      *testing.T
	engine *apply.Engine
	kind   *Kind
	calls  *counted
	blobs  blobs
}

func newHost(t *testing.T, l layout.Layout) *host {
	st, err := store.Open(filepath.Join(t.TempDir(), "store.db"), clock.System, slog.New(slog.DiscardHandler))
	must(t, err)
	h := &host{t: t, blobs: blobs{}}
	h.kind = New(Config{Layout: l, Content: h.blobs, Records: st})
	h.calls = &counted{manager: h.kind.systemd}
	h.kind.systemd = h.calls
	h.engine = &apply.Engine{
		Store: st, Content: h.blobs, Layout: l, Clock: clock.System, Log: slog.New(slog.DiscardHandler),
		Mesh: func() string { return "" }, Version: "1.0.0",
		Kinds: map[declaration.Type]resource.Kind{declaration.TypeUnit: h.kind},
	}
	return h
}

// faked is a host over a root of its own, with a fake systemd.
func faked(t *testing.T) (*host, *fake) {
	l := layout.Layout{Root: filepath.Join(t.TempDir(), "root")}
	h := newHost(t, l)
	f := &fake{l: l}
	h.calls.manager = f
	h.kind.why = func() string { return "" }
	t.Cleanup(func() { must(t, h.engine.Store.Close()) })
	return h, f
}

type blobs map[digest.Digest]string

func (b blobs) Read(d digest.Digest, _ int64) ([]byte, error) {
	if s, ok := b[d]; ok {
		return []byte(s), nil
	}
	return nil, fs.ErrNotExist
}

func (b blobs) Ensure(context.Context, digest.Digest) error { return nil }

func (h *host) accept(resources ...string) error {
	doc := []byte(`{"schema": 1, "name": "lab", "resources": [` + strings.Join(resources, ",") + `]}`)
	_, err := h.engine.Accept(context.Background(), store.Wanted{Source: store.SourceFile, Document: doc}, false)
	return err
}

// pass reconciles and returns "OUTCOME KEY (NOTE)" lines.
func (h *host) pass() string {
	h.t.Helper()
	r, err := h.engine.Reconcile(context.Background(), "test", false)
	must(h.t, err)
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

func (h *host) applied(resources ...string) string {
	h.t.Helper()
	must(h.t, h.accept(resources...))
	return h.pass()
}

// want compares lines; one that ends in "…" only how it begins.
func (h *host) want(got string, want ...string) {
	h.t.Helper()
	lines := strings.Split(got, "\n")
	if !slices.EqualFunc(lines, want, func(g, w string) bool {
		start, open := strings.CutSuffix(w, "…")
		return g == w || open && strings.HasPrefix(g, start)
	}) {
		h.t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// quiet holds that a pass changes nothing.
func (h *host) quiet() {
	h.t.Helper()
	before := h.engine.Store.Writes()
	h.calls.took()
	for _, line := range strings.Split(h.pass(), "\n") {
		if !strings.HasPrefix(line, "unchanged ") {
			h.t.Errorf("the second pass says %s", line)
		}
	}
	if calls, n := h.calls.took(), h.engine.Store.Writes()-before; len(calls) > 0 || n > 0 {
		h.t.Errorf("the second pass wrote %d pages and called %q", n, calls)
	}
}

// counted notes the calls that change something, and can die at one of them.
type counted struct {
	manager
	mu    sync.Mutex
	calls []string
	// die is the number of the call to die before, from 1.
	die int
}

func (c *counted) call(what string, do func() error) error {
	c.mu.Lock()
	c.calls = append(c.calls, what)
	dies := c.die == len(c.calls)
	c.mu.Unlock()
	if dies {
		panic("killed")
	}
	return do()
}

func (c *counted) reload(ctx context.Context) error {
	return c.call("daemon-reload", func() error { return c.manager.reload(ctx) })
}

func (c *counted) enable(ctx context.Context, unit string, runtime bool) (links []string, err error) {
	err = c.call("enable "+unit, func() (err error) { links, err = c.manager.enable(ctx, unit, runtime); return err })
	return links, err
}

func (c *counted) disable(ctx context.Context, unit string, runtime bool) (links []string, err error) {
	err = c.call("disable "+unit, func() (err error) { links, err = c.manager.disable(ctx, unit, runtime); return err })
	return links, err
}

func (c *counted) job(ctx context.Context, v verb, unit string) (result string, err error) {
	err = c.call(string(v)+" "+unit, func() (err error) { result, err = c.manager.job(ctx, v, unit); return err })
	return result, err
}

func (c *counted) resetFailed(ctx context.Context, unit string) error {
	return c.call("reset-failed "+unit, func() error { return c.manager.resetFailed(ctx, unit) })
}

// took returns the calls since it was asked last.
func (c *counted) took() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.calls
	c.calls = nil
	return out
}

// a is the JSON of a unit; more is the rest of its members.
func a(name, content, more string) string {
	c := ""
	if content != "" {
		c = fmt.Sprintf(`, "content": %q`, content)
	}
	return fmt.Sprintf(`{"id": %q, "type": "unit", "name": %q%s%s}`, strings.ReplaceAll(name, "@", "."), name, c, more)
}

const (
	sleeper = "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n"
	up      = `, "enabled": true, "active": true`
)
