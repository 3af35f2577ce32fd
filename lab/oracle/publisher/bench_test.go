package publisher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

const (
	passphrase = "correct horse"
	one, two   = "1.0.0", "1.0.1"
	counterOne = "1700000000"
)

// counters are those of the releases here.
var counters = map[string]string{one: counterOne, two: "1700000001"}

// shared is what all tests read and none changes: the program, a source tree, the
// keys, and what undisturbed builds give.
var shared struct {
	dir, program string
	env          []string
	clean        map[string]map[string]string // by version, then name: content
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	defer func() { _ = os.RemoveAll(shared.dir) }()
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func prepare() (err error) {
	if shared.dir, err = os.MkdirTemp("", "publisher"); err != nil {
		return err
	}
	shared.program = filepath.Join(shared.dir, "mesh-release")
	build := exec.Command("go", "build", "-o", shared.program, "./release/cmd/mesh-release")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	caches := strings.Fields(string(out))
	shared.env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "HOME=" + shared.dir, "GOCACHE=" + caches[0], "GOMODCACHE=" + caches[1]}
	return sources(filepath.Join(shared.dir, "src"))
}

// sources makes the source tree that mesh-release's own tests build.
func sources(dir string) error {
	const repo = "../../.."
	script, err := txtar.ParseFile(repo + "/release/cmd/mesh-release/testdata/script/build.txtar")
	if err != nil {
		return err
	}
	tree := map[string][]byte{}
	for _, f := range script.Files {
		if name, ok := strings.CutPrefix(f.Name, "src/"); ok {
			tree[name] = f.Data
		}
	}
	for _, name := range []string{".goreleaser.yaml", "LICENSE", "release/recipes/first-node/bundle.toml", "release/recipes/first-node/control-plane.json"} {
		if tree[name], err = os.ReadFile(filepath.Join(repo, name)); err != nil {
			return err
		}
	}
	for name, text := range tree {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// A desk is one publisher's folder: src, keys, secret, and nothing built.
type desk struct {
	t   *testing.T
	dir string
	env []string
}

// newDesk makes a desk; all have the same keys.
func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir()}
	tmp := d.path("tmp")
	must(t, os.Mkdir(tmp, 0o700))
	d.env = append(shared.env, "TMPDIR="+tmp, "NOX_PASSPHRASE_FILE="+d.put("secret", passphrase+"\n"))
	must(t, os.CopyFS(d.path("src"), os.DirFS(filepath.Join(shared.dir, "src"))))
	if shared.clean == nil {
		d.ok("keys", "init", filepath.Join(shared.dir, "keys"))
	}
	must(t, os.Mkdir(d.path("keys"), 0o700))
	entries, err := os.ReadDir(filepath.Join(shared.dir, "keys"))
	must(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(shared.dir, "keys", e.Name()))
		must(t, err)
		d.put("keys/"+e.Name(), string(b))
	}
	if shared.clean == nil {
		clean := map[string]map[string]string{}
		for version := range counters {
			d.ok(build("clean", version)...)
			clean[version] = d.tree("clean")
			if len(clean[version]) < 20 {
				t.Fatalf("a release of %d files", len(clean[version]))
			}
			must(t, os.RemoveAll(d.path("clean")))
		}
		shared.clean = clean
	}
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) put(name, text string) string {
	d.t.Helper()
	must(d.t, os.MkdirAll(filepath.Dir(d.path(name)), 0o755))
	must(d.t, os.WriteFile(d.path(name), []byte(text), 0o600))
	return d.path(name)
}

// build are the words of a build for one architecture.
func build(out, version string, more ...string) []string {
	return append([]string{"build", "--source", "src", "--version", version, "--counter", counters[version],
		"--arch", "x86_64", "--keys", "keys", "--out", out}, more...)
}

// A result is how a program ended.
type result struct {
	out, err string
	code     int
}

// mesh runs mesh-release in the desk, with standard input at its end.
func (d *desk) mesh(args ...string) result {
	d.t.Helper()
	return d.command(context.Background(), shared.program, args...)
}

// command runs a program and waits for it and all that it started: each holds the
// writing end of a pipe.
func (d *desk) command(ctx context.Context, program string, args ...string) result {
	d.t.Helper()
	r, w, err := os.Pipe()
	must(d.t, err)
	defer r.Close()
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Env, c.ExtraFiles = d.dir, d.env, []*os.File{w}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	w.Close()
	_, _ = r.Read(make([]byte, 1))
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		d.t.Fatal(err)
	}
	return result{out.String(), errs.String(), c.ProcessState.ExitCode()}
}

func (d *desk) ok(args ...string) string {
	d.t.Helper()
	r := d.mesh(args...)
	if r.code != 0 {
		d.t.Fatalf("mesh-release %q: exit %d\n%s", args, r.code, r.err)
	}
	return r.out
}

// manner is what every fault looks like: one line, after those that say what is
// being done.
var manner = regexp.MustCompile(`^((compiling|packing|comparing)[^\n]*\n)*mesh-release: (cannot .+|"[^"]+": .+)\n$`)

// fault holds that a run ended with an exit code, and one line that says this.
func (d *desk) fault(what string, r result, code int, says string) {
	d.t.Helper()
	if r.code != code || !manner.MatchString(r.err) || !strings.Contains(r.err, says) || strings.Contains(r.err, passphrase) {
		d.t.Errorf("%s: exit %d, want %d and one line that says %q:\n%s", what, r.code, code, says, r.err)
	}
}

// tree is what a directory holds; nothing when it is not there.
func (d *desk) tree(dir string) map[string]string {
	d.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(d.path(dir), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(d.path(dir), path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		all[name] = string(b)
		return err
	})
	must(d.t, err)
	return all
}

// holds is the version of the release that a directory holds, whole and with the
// bytes of an undisturbed build, or "" when it holds nothing. Between is a fault.
func (d *desk) holds(what, dir string) string {
	d.t.Helper()
	got := d.tree(dir)
	if len(got) == 0 {
		return ""
	}
	for version, clean := range shared.clean {
		if maps.Equal(got, clean) {
			return version
		}
	}
	r := d.mesh("verify", "--trust", "keys", dir)
	d.t.Errorf("%s: %q is neither nothing nor a whole release; verify says %d\n%s", what, dir, r.code, r.err)
	return "half"
}

// tidy holds that a run that ended by itself left nothing: no half directory beside
// the release, nothing in TMPDIR.
func (d *desk) tidy(what, parent string) {
	d.t.Helper()
	for _, name := range d.left(parent) {
		d.t.Errorf("%s: left %q", what, name)
	}
}

// left is what of a run's own is in the parent of what it made, or in its TMPDIR.
func (d *desk) left(parent string) (found []string) {
	d.t.Helper()
	for _, dir := range []string{parent, d.path("tmp")} {
		entries, err := os.ReadDir(dir)
		must(d.t, err)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "mesh-release-") {
				found = append(found, filepath.Join(dir, e.Name()))
			}
		}
	}
	return found
}
