package compat

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// programs are the two programs of one commit.
type programs struct{ host, controller string }

const top = "../.."

// build compiles both programs from a folder of source.
func build(t *testing.T, source string) programs {
	t.Helper()
	bin := t.TempDir()
	cmd := exec.Command("go", "build", "-o", bin+"/", "./host/cmd/mesh-host", "./controlplane/cmd/mesh-controller")
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", source, err, out)
	}
	return programs{filepath.Join(bin, "mesh-host"), filepath.Join(bin, "mesh-controller")}
}

// earlier compiles the programs of the earlier commit.
func earlier(t *testing.T) programs {
	t.Helper()
	b, err := os.ReadFile("testdata/earlier")
	if err != nil {
		t.Fatal(err)
	}
	hash := strings.TrimSpace(string(b))
	if out, err := exec.Command("git", "-C", top, "cat-file", "-e", hash+"^{commit}").CombinedOutput(); err != nil {
		t.Fatalf("this clone does not have commit %s, which the test builds: clone the whole history (git fetch --unshallow): %s", hash, out)
	}
	source := t.TempDir()
	archive := filepath.Join(t.TempDir(), "source.tar")
	for _, args := range [][]string{{"git", "-C", top, "archive", "-o", archive, hash}, {"tar", "-xf", archive, "-C", source}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return build(t, source)
}

// A place is a folder that stands for a machine, and what runs there.
type place struct {
	t    *testing.T
	root string
	log  output
	end  func()
}

type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) { o.mu.Lock(); defer o.mu.Unlock(); return o.b.Write(p) }
func (o *output) String() string              { o.mu.Lock(); defer o.mu.Unlock(); return o.b.String() }

func newPlace(t *testing.T) *place {
	p := &place{t: t, root: t.TempDir(), end: func() {}}
	t.Cleanup(func() {
		p.end()
		if t.Failed() {
			t.Logf("%s:\n%s", p.root, p.log.String())
		}
	})
	return p
}

// run starts a program that serves, in the place of the one that did.
func (p *place) run(program string, args ...string) {
	p.t.Helper()
	p.end()
	cmd := exec.Command(program, append(args, "--root", p.root)...)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.end = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		_ = cmd.Wait()
	})
}

// ask runs a command that ends.
func (p *place) ask(stdin, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(args, "--root", p.root)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s %v: %w: %s", filepath.Base(program), args, err, said.String())
	}
	return out.String(), err
}

func (p *place) must(stdin, program string, args ...string) string {
	p.t.Helper()
	out, err := p.ask(stdin, program, args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// until asks until the answer matches.
func (p *place) until(pattern, program string, args ...string) {
	p.t.Helper()
	want := regexp.MustCompile(pattern)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(90 * time.Second); ; <-tick.C {
		out, err := p.ask("", program, args...)
		if err == nil && want.MatchString(out) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s %v never said %q; last:\n%s%v", filepath.Base(program), args, pattern, out, err)
		}
	}
}

func (p *place) has(path string) bool {
	_, err := os.Stat(filepath.Join(p.root, path))
	return err == nil
}

const web = `{"schema": 1, "name": "web", "resources": [{"id": "page", "type": "file", "path": "/srv/page", "content": "hello\n"}]}`

// start raises a control plane and a node that has what is declared for it.
func start(t *testing.T, c, h *place, node, plane programs) (doc string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(c.root, "etc/nox-mesh/controller.toml")
	if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, fmt.Appendf(nil, "listen = [%q]\n", l.Addr()), 0o644); err != nil {
		t.Fatal(err)
	}
	l.Close()
	doc = filepath.Join(t.TempDir(), "web.json")
	if err := os.WriteFile(doc, []byte(web), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(h.root, "var/lib/nox-mesh"), 0o700); err != nil {
		t.Fatal(err)
	}

	c.run(plane.controller, "serve")
	h.run(node.host, "run")
	h.until(`"running": true`, node.host, "status", "--json")
	token := c.must("", plane.controller, "token", "create", "--name", "beta")
	h.must(token, node.host, "enrol", "-")
	c.must("", plane.controller, "declare", "web", doc, "--on", "node=beta")
	h.until(`file:/srv/page .*as applied`, node.host, "owned")
	c.until(`beta .*enrolled .*2/2`, plane.controller, "nodes")
	return doc
}

// life is that of a node of one version under a control plane of another, which is
// replaced by that of a third over the same state while the node is there.
func life(t *testing.T, node, plane, next programs) {
	c, h := newPlace(t), newPlace(t)
	doc := start(t, c, h, node, plane)

	// The control plane becomes another version.
	c.run(next.controller, "serve")
	c.until(`beta .*enrolled .*2/2`, next.controller, "nodes")
	c.must("", next.controller, "undeclare", "web")
	h.until(`owns nothing`, node.host, "owned")
	if h.has("srv/page") {
		t.Error("the page is still there")
	}
	c.must("", next.controller, "declare", "web", doc, "--on", "node=beta")
	h.until(`file:/srv/page .*as applied`, node.host, "owned")
	c.until(`beta .*enrolled .*4/4`, next.controller, "nodes")

	// It leaves by itself, and where that is known, it is known.
	h.must("", node.host, "retire", "--yes")
	if h.has("srv/page") {
		t.Error("the page is there after it left")
	}
	h.until(`"state": "hosted"`, node.host, "status", "--json")
}

func TestEarlierAndNow(t *testing.T) {
	then, now := earlier(t), build(t, top)
	for name, x := range map[string][3]programs{
		"earlier host, this control plane":                  {then, now, now},
		"this host, earlier control plane":                  {now, then, then},
		"earlier host, the control plane is upgraded":       {then, then, now},
		"this host, the control plane is upgraded under it": {now, then, now},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			life(t, x[0], x[1], x[2])
		})
	}
	t.Run("this control plane retires an earlier host", func(t *testing.T) {
		t.Parallel()
		retired(t, then, now)
	})
}

// retired has a control plane retire a host that does not know how to leave: it
// removes what it owns all the same, and is revoked then.
func retired(t *testing.T, node, plane programs) {
	c, h := newPlace(t), newPlace(t)
	start(t, c, h, node, plane)
	c.must("", plane.controller, "retire", "beta")
	h.until(`owns nothing`, node.host, "owned")
	if h.has("srv/page") {
		t.Error("the page is still there")
	}
	c.until(`beta .*retiring`, plane.controller, "nodes")
	c.must("", plane.controller, "revoke", "beta")
	c.until(`beta .*revoked`, plane.controller, "nodes")
}
