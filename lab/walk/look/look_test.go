package look

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain makes the test binary what runs from a root as well: a shim, which
// starts what it is told to, and a process. Both live until their input ends,
// with the test.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "shim":
		if exe := os.Getenv("LOOK_CHILD"); exe != "" {
			start(exe, []string{"/lib/beat", "a"}, []string{"K=v"}, os.Stdin)
		}
		fallthrough
	case os.Args[0] == "/lib/beat":
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func start(exe string, args, env []string, stdin *os.File) *exec.Cmd {
	cmd := &exec.Cmd{Path: exe, Args: args, Env: env, Stdin: stdin}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd
}

// A bench is a root with a few files and, if asked for, a process under a shim.
type bench struct {
	*testing.T
	root  string
	want  map[string][]Thing
	stdin *os.File
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, root: filepath.Join(t.TempDir(), "m")}
	self, err := os.Executable()
	must(t, err)
	for _, dir := range []string{"/lib", "/etc", "/state"} {
		must(t, os.MkdirAll(b.root+dir, 0o755))
	}
	must(t, os.WriteFile(b.root+"/etc/f", []byte("text"), 0o640))
	must(t, os.Symlink("f", b.root+"/etc/l"))
	must(t, os.CopyFS(b.root+"/state", os.DirFS("."))) // what is private may be anything
	for _, name := range []string{"/lib/mesh-host", "/lib/beat"} {
		from, err := os.ReadFile(self)
		must(t, err)
		must(t, os.WriteFile(b.root+name, from, 0o755))
	}
	tree, err := Tree(b.root, "/state")
	must(t, err)
	b.want = map[string][]Thing{}
	for p, is := range tree {
		b.want[p] = []Thing{is}
	}
	r, w, err := os.Pipe()
	must(t, err)
	b.stdin = r
	t.Cleanup(func() { r.Close(); w.Close() })
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run starts something from the root, which ends with the test.
func (b *bench) run(exe string, args, env []string) {
	b.Helper()
	cmd := start(b.root+exe, args, env, b.stdin)
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

func (b *bench) shim(name, child string) {
	b.run("/lib/mesh-host", []string{"/lib/mesh-host", "shim", "--root", b.root, name}, []string{"LOOK_CHILD=" + child})
}

// says waits until the checker says exactly those sentences, by their parts.
func (b *bench) says(check func() []string, parts ...string) {
	b.Helper()
	var said []string
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-tick.C {
		said = check()
		left := slices.Clone(said)
		for _, part := range parts {
			if i := slices.IndexFunc(left, func(s string) bool { return strings.Contains(s, part) }); i >= 0 {
				left = slices.Delete(left, i, i+1)
			}
		}
		if len(left) == 0 && len(said) == len(parts) {
			return
		}
	}
	b.Fatalf("the checker says\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(parts, "\n"))
}

// TestFilesNamesEachFault breaks a tree in every way it may break.
func TestFilesNamesEachFault(t *testing.T) {
	for name, c := range map[string]struct {
		breakIt func(root string) error
		says    []string
	}{
		"as it shall be": {func(string) error { return nil }, nil},
		"a temporary file left": {
			func(r string) error { return os.WriteFile(r+"/etc/.nox-1.tmp", nil, 0o600) },
			[]string{"/etc/.nox-1.tmp is left over", "/etc/.nox-1.tmp is a temporary file"}},
		"a temporary file in the state": {
			func(r string) error { return os.WriteFile(r+"/state/.nox-1.tmp", nil, 0o600) },
			[]string{"/state/.nox-1.tmp is a temporary file"}},
		"a directory left":      {func(r string) error { return os.Mkdir(r+"/etc/d", 0o755) }, []string{"/etc/d is left over: d 0755"}},
		"a file missing":        {func(r string) error { return os.Remove(r + "/etc/f") }, []string{"/etc/f is missing, want [f 0640"}},
		"another mode":          {func(r string) error { return os.Chmod(r+"/etc/f", 0o644) }, []string{"/etc/f is f 0644"}},
		"a setuid bit":          {func(r string) error { return os.Chmod(r+"/etc/f", 0o640|os.ModeSetuid) }, []string{"/etc/f is f 4640"}},
		"a directory's mode":    {func(r string) error { return os.Chmod(r+"/etc", 0o700) }, []string{"/etc is d 0700"}},
		"other content":         {func(r string) error { return os.WriteFile(r+"/etc/f", []byte("Text"), 0) }, []string{`/etc/f is f 0640`}},
		"a symlink for a file":  {func(r string) error { _ = os.Remove(r + "/etc/f"); return os.Symlink("x", r+"/etc/f") }, []string{`/etc/f is l 0000`}},
		"a symlink elsewhere":   {func(r string) error { _ = os.Remove(r + "/etc/l"); return os.Symlink("g", r+"/etc/l") }, []string{`/etc/l is l 0000`}},
		"a fifo for a file":     {func(r string) error { _ = os.Remove(r + "/etc/f"); return syscall.Mkfifo(r+"/etc/f", 0o640) }, []string{"/etc/f is p 0640"}},
		"something in the root": {func(r string) error { return os.WriteFile(r+"/x", nil, 0o600) }, []string{"/x is left over"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			must(t, c.breakIt(b.root))
			b.says(func() []string { return Files(b.root, b.want, "/state") }, c.says...)
		})
	}
}

func TestTouchedNamesEachTouch(t *testing.T) {
	for name, c := range map[string]struct {
		touch func(root string) error
		says  []string
	}{
		"nothing": {func(r string) error { _, err := os.ReadFile(r + "/etc/f"); return err }, nil},
		"the same bytes": {func(r string) error { return os.WriteFile(r+"/etc/f", []byte("text"), 0) },
			[]string{"/etc/f was touched"}},
		"the same mode": {func(r string) error { return os.Chmod(r+"/etc/f", 0o640) }, []string{"/etc/f was touched"}},
		"made and removed again": {func(r string) error { _ = os.Mkdir(r+"/etc/d", 0o755); return os.Remove(r + "/etc/d") },
			[]string{"/etc was touched"}},
		"a second name": {func(r string) error { return os.Link(r+"/etc/f", r+"/lib/f") },
			[]string{"/etc/f was touched", "/lib was touched", "/lib/f was made"}},
		"gone": {func(r string) error { return os.Remove(r + "/etc/l") }, []string{"/etc was touched", "/etc/l was taken away"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			before, err := Stamps(b.root, "/state")
			must(t, err)
			tick := time.NewTicker(20 * time.Millisecond) // the kernel's clock for files is coarser than ours
			<-tick.C
			tick.Stop()
			must(t, c.touch(b.root))
			b.says(func() []string {
				now, err := Stamps(b.root, "/state")
				must(t, err)
				return Touched(before, now)
			}, c.says...)
		})
	}
}

// TestProcessesNamesEachFault has processes other than they shall be.
func TestProcessesNamesEachFault(t *testing.T) {
	for name, c := range map[string]struct {
		up   func(b *bench)
		want func(p Process) map[string]Process
		says []string
	}{
		"as it shall be":   {func(b *bench) { b.shim("a", b.root+"/lib/beat") }, nil, nil},
		"none":             {func(*bench) {}, nil, []string{"process a has 0 shims", "process a runs 0 times"}},
		"a shim alone":     {func(b *bench) { b.shim("a", "") }, nil, []string{"process a runs 0 times"}},
		"two":              {func(b *bench) { b.shim("a", b.root+"/lib/beat"); b.shim("a", b.root+"/lib/beat") }, nil, []string{"process a has 2 shims", "process a runs 2 times"}},
		"not declared":     {func(b *bench) { b.shim("a", b.root+"/lib/beat"); b.shim("b", "") }, nil, []string{"process b is not declared"}},
		"none is declared": {func(b *bench) { b.shim("a", b.root+"/lib/beat") }, func(Process) map[string]Process { return nil }, []string{"process a is not declared", "is under no shim"}},
		"under no shim": {func(b *bench) {
			b.shim("a", b.root+"/lib/beat")
			b.run("/lib/beat", []string{"/lib/beat", "a"}, []string{"K=v"})
		}, nil, []string{"is under no shim"}},
		"another program's, by its environment": {func(b *bench) {
			b.shim("a", b.root+"/lib/beat")
			cmd := exec.Command("/bin/sleep", "1000")
			cmd.Env = []string{"NOX_ROOT=" + b.root}
			must(b.T, cmd.Start())
			b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		}, nil, []string{"is under no shim"}},
		"other arguments": {func(b *bench) { b.shim("a", b.root+"/lib/beat") }, func(p Process) map[string]Process {
			p.Args = []string{"/lib/beat", "b"}
			return map[string]Process{"a": p}
		}, []string{"process a has the arguments"}},
		"another environment": {func(b *bench) { b.shim("a", b.root+"/lib/beat") }, func(p Process) map[string]Process {
			p.Env = []string{"K=v", "L=w"}
			return map[string]Process{"a": p}
		}, []string{"process a has the environment"}},
		"another user": {func(b *bench) { b.shim("a", b.root+"/lib/beat") }, func(p Process) map[string]Process {
			p.UID++
			return map[string]Process{"a": p}
		}, []string{"process a has the user"}},
		"not over": {func(b *bench) { b.shim("a", b.root+"/lib/beat") }, func(p Process) map[string]Process {
			p.Over = true
			return map[string]Process{"a": p}
		}, []string{"process a runs 1 times, want 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			p := Process{Exe: b.root + "/lib/beat", Args: []string{"/lib/beat", "a"}, Env: []string{"K=v"}, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
			want := map[string]Process{"a": p}
			if c.want != nil {
				want = c.want(p)
			}
			c.up(b)
			b.says(func() []string { return Processes(b.root, want) }, c.says...)
		})
	}
}

// TestACheckerOfItsOwn: what judges the host shares nothing with it.
func TestACheckerOfItsOwn(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	must(t, err)
	if deps := strings.Fields(string(out)); fmt.Sprint(deps) != "[github.com/nox-mesh/nox-mesh/lab/walk/look]" {
		t.Errorf("it imports %v", deps)
	}
}
