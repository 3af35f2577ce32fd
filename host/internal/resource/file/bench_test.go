package file

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

var ctx = context.Background()

// A bench is the kind over a fresh root, with a real content store.
type bench struct {
	*testing.T
	root  string
	store *content.Store
	kind  *Kind
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return benchAt(t, t.TempDir(), filepath.Join(t.TempDir(), "content"))
}

func benchAt(t *testing.T, root, store string) *bench {
	t.Helper()
	s, err := content.Open(store)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, root: root, store: s, kind: New(Config{Layout: layout.Layout{Root: root}, Content: s})}
	b.mkdir("/", 0o755) // whatever the umask of who runs the tests
	b.mkdir("/etc", 0o755)
	return b
}

func (b *bench) path(p string) string { return filepath.Join(b.root, p) }

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) mkdir(p string, mode os.FileMode) {
	b.Helper()
	b.must(os.MkdirAll(b.path(p), 0o755))
	b.must(os.Chmod(b.path(p), mode))
}

func (b *bench) write(p, text string, mode os.FileMode) {
	b.Helper()
	b.must(os.WriteFile(b.path(p), []byte(text), 0o600))
	b.must(os.Chmod(b.path(p), mode))
}

func (b *bench) link(p, target string) {
	b.Helper()
	b.must(os.Symlink(target, b.path(p)))
}

func (b *bench) add(text string) digest.Digest {
	b.Helper()
	d, _, err := b.store.Add(ctx, strings.NewReader(text), 1<<30)
	b.must(err)
	return d
}

// text fails the test unless p is a regular file with that text.
func (b *bench) text(p, want string) {
	b.Helper()
	fi, err := os.Lstat(b.path(p))
	b.must(err)
	got, err := os.ReadFile(b.path(p))
	b.must(err)
	if !fi.Mode().IsRegular() || string(got) != want {
		b.Errorf("%s is %v with %q, want a file with %q", p, fi.Mode(), got, want)
	}
}

func (b *bench) mode(p string, want uint32) {
	b.Helper()
	var st unix.Stat_t
	b.must(unix.Lstat(b.path(p), &st))
	if got := st.Mode & 0o7777; got != want {
		b.Errorf("%s has mode %04o, want %04o", p, got, want)
	}
}

// holds fails the test unless the directory has exactly those names.
func (b *bench) holds(dir, want string) {
	b.Helper()
	es, err := os.ReadDir(b.path(dir))
	b.must(err)
	var names []string
	for _, e := range es {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != want {
		b.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

// want makes the wish of a JSON object without its type.
func want(t testing.TB, spec string) resource.Want {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(spec), &m); err != nil {
		t.Fatal(err)
	}
	take, _ := m["take_over"].(bool)
	delete(m, "take_over")
	m["type"] = "file"
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	r, err := declaration.FromSpec("it", raw)
	if err != nil {
		t.Fatal(err)
	}
	r.TakeOver = take
	return resource.Want{Resource: r, Spec: r.Spec()}
}

func record(w resource.Want, before json.RawMessage) resource.Record {
	return resource.Record{Key: w.Resource.Key(), ID: "it", Type: w.Resource.Type, Spec: w.Spec, Before: before}
}

func (b *bench) check(w resource.Want, prior *resource.Record) resource.State {
	b.Helper()
	st, err := b.kind.Check(ctx, w, prior)
	b.must(err)
	return st
}

// try looks and acts, as the engine does.
func (b *bench) try(w resource.Want, prior *resource.Record) (resource.State, error) {
	found, err := b.kind.Check(ctx, w, prior)
	if err != nil {
		return found, err
	}
	return found, b.kind.Apply(ctx, w, prior, found)
}

// apply looks, acts, looks again and records.
func (b *bench) apply(w resource.Want, prior *resource.Record) resource.Record {
	b.Helper()
	found, err := b.try(w, prior)
	b.must(err)
	if st := b.check(w, prior); !st.Same || len(st.Differences) > 0 {
		b.Fatalf("after Apply Check says %+v", st)
	}
	if prior != nil {
		return record(w, prior.Before)
	}
	return record(w, found.Found)
}

// fails fails the test unless Apply (or the Check before it) fails and says all
// of that.
func (b *bench) fails(w resource.Want, says ...string) {
	b.Helper()
	_, err := b.try(w, nil)
	saysAll(b.T, err, says...)
}

func saysAll(t *testing.T, err error, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the error is %q, want it to say %q", err, s)
		}
	}
}

func (b *bench) remove(r resource.Record, want declaration.Outcome, note string) {
	b.Helper()
	out, got, err := b.kind.Remove(ctx, r)
	b.must(err)
	if out != want || !strings.Contains(got, note) || note == "" && got != "" {
		b.Errorf("Remove says %q, %q; want %q, %q", out, got, want, note)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can do this")
	}
}

const childVariable = "NOX_FILE_TEST_CHILD"

// again is the command that runs the current test in a process of its own, in
// which inChild is true.
func again(t *testing.T, before ...string) *exec.Cmd {
	args := append(before, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childVariable+"=1", "GOMAXPROCS=1")
	return cmd
}

func inChild() bool { return os.Getenv(childVariable) != "" }

// inMountNamespace reports true in a process with mounts of its own, in which
// it runs the test again.
func inMountNamespace(t *testing.T) bool {
	t.Helper()
	if inChild() {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return true
	}
	cmd := again(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skipf("there is no mount namespace to be had: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return false
}

// tracer returns the path of an strace that works.
func tracer(t *testing.T) string {
	t.Helper()
	s, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	if err := exec.Command(s, "-f", "-o", "/dev/null", "-e", "trace=none", "true").Run(); err != nil {
		t.Skipf("strace does not work here: %v", err)
	}
	return s
}

// strace returns how to run a command in which the nth call of that name goes
// wrong; path, if given, is the only file whose calls count.
func strace(t *testing.T, call, what string, n int, path string) []string {
	t.Helper()
	args := []string{tracer(t), "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call,
		"-e", "inject=" + call + ":" + what + ":when=" + strconv.Itoa(n)}
	if path != "" {
		args = append(args, "-P", path)
	}
	return args
}

func (b *bench) temp(p string) string {
	return filepath.Join(filepath.Dir(b.path(p)), durable.TempName(filepath.Base(p)))
}
