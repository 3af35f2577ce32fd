//go:build machine

package packages

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/command"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// holder starts a process that has a lock until free is called.
func holder(t testing.TB, script string) (pid int, free func()) {
	cmd := exec.Command("/bin/sh", "-c", script)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	done := false
	free = func() {
		if !done {
			done = true
			_, _ = in.Write([]byte("\n"))
			_ = cmd.Wait()
		}
	}
	t.Cleanup(free)
	return cmd.Process.Pid, free
}

func (s sort) require(t testing.TB) {
	t.Helper()
	skip := t.Skipf
	if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
		skip = t.Fatalf
	}
	if os.Geteuid() != 0 {
		skip("needs root: package managers chroot")
	}
	for _, p := range s.needs {
		if _, err := exec.LookPath(p); err != nil {
			skip("%s is not here", p)
		}
	}
}

// A world is one root with one manager.
type world struct {
	testing.TB
	sort
	l     layout.Layout
	kind  *Kind
	store *content.Store
	// runs are the command lines of the manager.
	runs []string
	// through changes how it is run.
	through func(command.Line) command.Line
}

func newWorld(t testing.TB, s sort) *world {
	t.Helper()
	s.require(t)
	return worldAt(t, s, layout.Layout{Root: filepath.Join(memoryDir(t), "root")})
}

// memoryDir is a folder in memory, if there is such a place: dpkg syncs a lot.
func memoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "nox-packages-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func worldAt(t testing.TB, s sort, l layout.Layout) *world {
	t.Helper()
	prepare(t, s, l)
	store, err := content.Open(l.Root + ".content")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, sort: s, l: l, store: store}
	w.kind = New(Config{Layout: l, Content: store, Clock: clock.System, Manager: s.manager(l, w.run), Trust: func() (*trust.Policy, error) { return publisher().policy, nil }})
	w.kind.patience, w.kind.tick = 400*time.Millisecond, 20*time.Millisecond
	return w
}

func (w *world) run(ctx context.Context, l command.Line) (string, error) {
	w.runs = append(w.runs, strings.Join(append([]string{filepath.Base(l.Path)}, l.Args...), " "))
	if w.through != nil {
		l = w.through(l)
	}
	return command.Run(ctx, l)
}

var library = regexp.MustCompile(`(/\S+\.so\S*) \(`)

// prepare makes a root in which a shell runs.
func prepare(t testing.TB, s sort, l layout.Layout) {
	t.Helper()
	if _, err := os.Stat(l.Path("/usr/bin/bash")); err == nil {
		return
	}
	for _, d := range []string{"usr/bin", "usr/lib", "usr/lib64", "etc", "tmp", "dev", "var/lib"} {
		if err := os.MkdirAll(filepath.Join(l.Root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"bin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+d, filepath.Join(l.Root, d)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"/usr/bin/bash", "/usr/bin/sleep"} {
		list := []string{p}
		for _, m := range library.FindAllStringSubmatch(tool(t, "/", "ldd", p), -1) {
			list = append(list, m[1])
		}
		for _, f := range list {
			tool(t, "/", "install", "-D", "-m", "755", f, filepath.Join(l.Root, f))
		}
	}
	if err := os.Symlink("bash", l.Path("/usr/bin/sh")); err != nil {
		t.Fatal(err)
	}
	s.prepare(t, l)
}

// publisher is who signs the packages of these tests.
var publisher = sync.OnceValue(func() (p struct {
	entity *openpgp.Entity
	policy *trust.Policy
}) {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	made := time.Unix(1700000000, 0)
	entity, err := openpgp.NewEntity("test", "", "", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return made }})
	must(err)
	entity.Subkeys = nil // which is for encryption, and no package key has
	p.entity = entity
	var ring bytes.Buffer
	must(entity.Serialize(&ring))
	packages, err := trust.NewPackageKey(ring.Bytes())
	must(err)
	root, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	key, err := trust.NewKey(root.Public(), trust.ScopeRoot)
	must(err)
	file, err := trust.SignRoot(trust.NewRoot(nil, []trust.Key{key, packages}), root)
	must(err)
	p.policy, err = trust.FromRoot(file)
	must(err)
	return p
})

func (w *world) add(file string) digest.Digest {
	w.Helper()
	f, err := os.Open(file)
	if err != nil {
		w.Fatal(err)
	}
	defer f.Close()
	d, _, err := w.store.Add(context.Background(), f, 1<<30)
	if err != nil {
		w.Fatal(err)
	}
	return d
}

// wish packs the recipe, puts it into the content store, and wants it.
func (w *world) wish(r recipe) resource.Want {
	w.Helper()
	return w.source(w.file(r), r.name, r.version)
}

// packed are packages that were made before.
var packed sync.Map

// file packs the recipe.
func (w *world) file(r recipe) string {
	w.Helper()
	key := fmt.Sprint(w.sort.name, r)
	b, ok := packed.Load(key)
	if !ok {
		made, err := os.ReadFile(w.sort.pack(w, tree(w, r), r))
		if err != nil {
			w.Fatal(err)
		}
		packed.Store(key, made)
		b = made
	}
	file := filepath.Join(w.TempDir(), r.name+w.kind.Manager.Suffix())
	put(w, file, string(b.([]byte)), 0o644)
	return file
}

func (w *world) source(file, name, version string) resource.Want {
	w.Helper()
	spec := fmt.Sprintf(`{"type":"package","name":%q,"version":%q,"source":%q`, name, version, w.add(file))
	if w.kind.Manager.WantsSignature() {
		b, err := os.ReadFile(file)
		if err != nil {
			w.Fatal(err)
		}
		name := file + ".sig"
		put(w, name, string(sign(w, b)), 0o644)
		spec += fmt.Sprintf(`,"signature":%q`, w.add(name))
	}
	return want(w, spec+"}")
}

func want(t testing.TB, spec string) resource.Want {
	t.Helper()
	r, err := declaration.FromSpec("it", []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	return resource.Want{Resource: r, Spec: r.Spec()}
}

// ctx ends when something hangs.
func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), 2*time.Minute)
	w.Cleanup(cancel)
	return ctx
}

func (w *world) check(want resource.Want, prior *resource.Record) resource.State {
	w.Helper()
	st, err := w.kind.Check(w.ctx(), want, prior)
	if err != nil {
		w.Fatal(err)
	}
	return st
}

// same holds that all is as declared, by a look that starts nothing.
func (w *world) same(want resource.Want, prior *resource.Record) resource.State {
	w.Helper()
	runs := len(w.runs)
	st := w.check(want, prior)
	if !st.Same || !st.Exists || st.Foreign || len(st.Differences) > 0 {
		w.Fatalf("it is not as declared: %+v", st)
	}
	if err := w.kind.Apply(w.ctx(), want, prior, st); err != nil || len(w.runs) != runs {
		w.Fatalf("what is as declared is applied again: %q, %v", w.runs[runs:], err)
	}
	return st
}

func record(want resource.Want, found resource.State) resource.Record {
	r := want.Resource
	return resource.Record{Key: r.Key(), ID: r.ID, Type: r.Type, Spec: want.Spec, Before: found.Found}
}

// apply looks, applies and looks again, as the engine does.
func (w *world) apply(want resource.Want, prior *resource.Record) resource.Record {
	w.Helper()
	found := w.check(want, prior)
	if err := w.kind.Apply(w.ctx(), want, prior, found); err != nil {
		w.Fatal(err)
	}
	rec := record(want, found)
	if prior != nil {
		rec.Before = prior.Before
	}
	w.same(want, &rec)
	return rec
}

// fails applies, and holds that it is neither called good nor becomes it.
func (w *world) fails(want resource.Want, prior *resource.Record, says ...string) resource.State {
	w.Helper()
	return w.failsIn(w.ctx(), want, prior, says...)
}

func (w *world) failsIn(ctx context.Context, want resource.Want, prior *resource.Record, says ...string) resource.State {
	w.Helper()
	err := w.kind.Apply(ctx, want, prior, w.check(want, prior))
	for _, s := range says {
		if err == nil || !strings.Contains(err.Error(), s) {
			w.Errorf("the error is %v\nwant %q in it", err, s)
		}
	}
	st := w.check(want, prior)
	if st.Same {
		w.Error("it is called as declared")
	}
	return st
}

func (w *world) remove(rec resource.Record, outcome declaration.Outcome) string {
	w.Helper()
	out, note, err := w.kind.Remove(w.ctx(), rec)
	if err != nil || out != outcome {
		w.Fatalf("Remove says %q, %q, %v; want %q", out, note, err, outcome)
	}
	return note
}

func (w *world) byHand(line []string) {
	w.Helper()
	tool(w, "/", line[0], line[1:]...)
}

func (w *world) text(path, want string) {
	w.Helper()
	b, err := os.ReadFile(w.l.Path(path))
	if err != nil || string(b) != want {
		w.Errorf("%s holds %q, %v; want %q", path, b, err, want)
	}
}

func (w *world) gone(path string) {
	w.Helper()
	if _, err := os.Lstat(w.l.Path(path)); err == nil {
		w.Errorf("%s is there", path)
	}
}

// tidy holds that the host left nothing of its own.
func (w *world) tidy() {
	w.Helper()
	left, _ := os.ReadDir(w.kind.private())
	for _, f := range left {
		w.Errorf("left in the host's own folder: %s", f.Name())
	}
	if l, err := w.kind.Manager.Lock(); err != nil || l.By != "" {
		w.Errorf("the database is locked by %s, %v", l.By, err)
	}
}

func each(t *testing.T, test func(w *world)) {
	for _, s := range sorts {
		t.Run(s.name, func(t *testing.T) { test(newWorld(t, s)) })
	}
}

func hello(version string) recipe {
	return recipe{
		name: "hello", version: version + "-1",
		files:  map[string]string{"usr/bin/hello": "hello " + version + "\n", "usr/share/hello/a": "a", "usr/share/hello/b b": strings.Repeat(version, 1000)},
		config: "default of " + version + "\n",
	}
}
