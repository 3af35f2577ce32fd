//go:build machine

package container

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

var record = flag.Bool("record", false, "write what the runtimes answer to testdata")

// An engine is a real runtime with a storage and a network of its own.
type engine struct {
	name, dir string
	env, args []string
	cmd       *exec.Cmd
}

func (e *engine) socket() string { return filepath.Join(e.dir, "d.sock") }

// up starts it and waits for its answer.
func (e *engine) up(t *testing.T) {
	t.Helper()
	e.cmd = exec.Command("/bin/sh", append([]string{"-c", `ip link set lo up && exec "$@"`, "sh"}, e.args...)...)
	e.cmd.Env = append(os.Environ(), e.env...)
	log, err := os.OpenFile(filepath.Join(e.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	defer log.Close()
	e.cmd.Stdout, e.cmd.Stderr = log, log
	// What it makes of networks and mounts ends with it.
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	must(t, e.cmd.Start())
	ended := make(chan struct{})
	cmd := e.cmd
	go func() { _ = cmd.Wait(); close(ended) }()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := client{socket: e.socket()}.call(t.Context(), request{method: http.MethodGet, path: "/_ping", plain: true}, nil)
		if err == nil {
			return
		}
		select {
		case <-ended:
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("%s ended: %s", e.name, said)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %v", e.name, err)
		}
	}
}

// down ends it in order; its containers may go on.
func (e *engine) down(t *testing.T) {
	if e.cmd == nil {
		return
	}
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	for range 500 {
		if e.cmd.Process.Signal(syscall.Signal(0)) != nil {
			e.cmd = nil
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s does not end", e.name)
	_ = e.cmd.Process.Kill()
}

// theEngine is the runtime of that name, not yet started.
func theEngine(t *testing.T, name string) *engine {
	t.Helper()
	skip := t.Skip
	if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
		skip = t.Fatal
	}
	if os.Geteuid() != 0 {
		skip("not root")
	}
	made := map[string]struct {
		tools []string
		make  func(*testing.T) *engine
	}{
		"podman": {[]string{"podman", "runc", "conmon"}, podman},
		"docker": {[]string{"dockerd", "runc"}, docker},
	}[name]
	for _, tool := range made.tools {
		if _, err := exec.LookPath(tool); err != nil {
			skip(err)
		}
	}
	return made.make(t)
}

func podman(t *testing.T) *engine {
	e := &engine{name: "podman", dir: shortDir(t)}
	write := func(name, text string) string {
		path := filepath.Join(e.dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	// Both limits, and soft like hard, or it asks for more than it may.
	e.env = []string{
		"CONTAINERS_CONF=" + write("containers.conf", fmt.Sprintf(`[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
[network]
network_backend = "netavark"
network_config_dir = %q
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = %q
`, filepath.Join(e.dir, "net"), filepath.Join(e.dir, "tmp"))),
		"CONTAINERS_STORAGE_CONF=" + write("storage.conf", fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n",
			filepath.Join(e.dir, "graph"), filepath.Join(e.dir, "run"))),
	}
	e.args = []string{"podman", "system", "service", "--time=0", "unix://" + e.socket()}
	return e
}

func docker(t *testing.T) *engine {
	e := &engine{name: "docker", dir: shortDir(t)}
	e.args = []string{"dockerd", "--data-root", filepath.Join(e.dir, "data"), "--exec-root", filepath.Join(e.dir, "exec"),
		"--pidfile", filepath.Join(e.dir, "pid"), "-H", "unix://" + e.socket(), "--iptables=false", "--ip-forward=false",
		"--bip=10.79.0.1/24", "--storage-driver=vfs"}
	return e
}

// A lab is a runtime with the kind in front of it.
type lab struct {
	*testing.T
	top          *testing.T // of the engine
	engine       *engine
	kind         *Kind
	proxy        *proxy
	store        *content.Store
	layout       layout.Layout
	one, two     digest.Digest
	bad          digest.Digest
	oneID, twoID string
	r            *runtime
}

func newLab(t *testing.T, e *engine) *lab {
	t.Cleanup(func() { e.down(t) })
	e.up(t)
	l := &lab{T: t, top: t, engine: e, proxy: newProxy(t, e.socket()), layout: layout.Layout{Root: t.TempDir()}}
	var err error
	l.store, err = content.Open(l.layout.Content())
	must(t, err)
	program := build(t)
	var one, two digest.Digest
	l.one, one = anImage(t, l.store, program, "one", "/program")
	l.two, two = anImage(t, l.store, program, "two", "/program")
	l.bad, _ = anImage(t, l.store, program, "bad", "/nothing")
	l.oneID, l.twoID = string(one), string(two)
	l.fresh()
	l.r, err = l.kind.connect(t.Context(), e.socket())
	must(t, err)
	t.Cleanup(l.clean)
	return l
}

// fresh is the host after it was killed.
func (l *lab) fresh() {
	l.kind = New(Config{Layout: l.layout, Content: l.store, Socket: l.proxy.socket})
	l.kind.settle = 200 * time.Millisecond
	l.proxy.begin(0, false, false)
}

// clean removes every container of the runtime.
func (l *lab) clean() {
	all, err := l.r.list(context.Background(), "")
	if err != nil {
		l.Error(err)
	}
	for _, c := range all {
		if err := l.r.remove(context.Background(), c.ID); err != nil {
			l.Error(err)
		}
	}
}

func build(t *testing.T) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, "./testdata/program")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	b, err := os.ReadFile(out)
	must(t, err)
	return b
}

// want is a wish with these members.
func (l *lab) want(image digest.Digest, members string) resource.Want {
	l.Helper()
	if members == "" {
		members = `"network":"host"`
	}
	return wish(l.T, fmt.Sprintf(`{"type":"container","name":"web","image":%q,%s}`, image, members))
}

func (l *lab) check(w resource.Want, prior *resource.Record) resource.State {
	l.Helper()
	st, err := l.kind.Check(l.Context(), w, prior)
	if err != nil {
		l.Fatalf("Check: %v", err)
	}
	return st
}

// apply is what the engine does: look, act, look again.
func (l *lab) apply(w resource.Want, prior *resource.Record) *resource.Record {
	l.Helper()
	found := l.check(w, prior)
	if err := l.kind.Apply(l.Context(), w, prior, found); err != nil {
		l.Fatalf("Apply: %v", err)
	}
	rec := recordOf(w, prior, found)
	if st := l.check(w, rec); !st.Same {
		l.Fatalf("after Apply: %+v", st)
	}
	return rec
}

func (l *lab) remove(rec *resource.Record) {
	l.Helper()
	for range 2 {
		if out, note, err := l.kind.Remove(l.Context(), *rec); err != nil || out != declaration.Removed || note != "" {
			l.Fatalf("Remove: %q, %q, %v", out, note, err)
		}
	}
}

func (l *lab) the(name string) *inspected {
	l.Helper()
	c, err := l.r.inspect(l.Context(), name)
	must(l.T, err)
	if c == nil {
		l.Fatalf("there is no container %q", name)
	}
	return c
}

// names are those of all containers.
func (l *lab) names() []string {
	l.Helper()
	all, err := l.r.list(l.Context(), "")
	must(l.T, err)
	out := []string{}
	for _, c := range all {
		out = append(out, c.name())
	}
	slices.Sort(out)
	return out
}

// images are the names of images that there are.
func (l *lab) images() []string {
	l.Helper()
	var all []image
	_, err := l.r.get(l.Context(), "/images/json", nil, &all)
	must(l.T, err)
	out := []string{}
	for _, i := range all {
		out = append(out, i.RepoTags...)
	}
	slices.Sort(out)
	return out
}

func (l *lab) post(path string, query url.Values) {
	l.Helper()
	must(l.T, l.r.post(l.Context(), path, query, nil, nil))
}
