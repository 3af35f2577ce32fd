package bundle

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// programs are mesh-host and mesh-release of this source, and a publisher's keys:
// made once.
var programs struct {
	sync.Once
	dir string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if programs.dir != "" {
		_ = os.RemoveAll(programs.dir)
	}
	os.Exit(code)
}

func build(t *testing.T) {
	t.Helper()
	var err error
	if programs.dir, err = os.MkdirTemp("", "nox-bundle-"); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", programs.dir, "./host/cmd/mesh-host", "./release/cmd/mesh-release")
	build.Dir = "../../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b := &bench{t, programs.dir}
	b.put("passphrase", "correct horse")
	b.run(b.path("mesh-release"), "keys", "init", "keys")
}

// A bench is a folder with the two programs and keys.
type bench struct {
	t   *testing.T
	dir string
}

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
				t.Fatalf("%s is not here", p)
			}
			t.Skipf("%s is not here", p)
		}
	}
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t, t.TempDir()}
	programs.Do(func() { build(t) })
	for _, name := range []string{"mesh-host", "mesh-release"} {
		if err := os.Symlink(filepath.Join(programs.dir, name), b.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(b.path("tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.put("passphrase", "correct horse")
	b.run("cp", "-a", filepath.Join(programs.dir, "keys"), "keys")
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) put(name, content string) {
	b.t.Helper()
	if err := os.WriteFile(b.path(name), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// run runs a program in the bench's folder and returns its standard output.
func (b *bench) run(program string, args ...string) []byte {
	b.t.Helper()
	c := exec.Command(program, args...)
	c.Dir = b.dir
	c.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "NOX_PASSPHRASE_FILE=" + b.path("passphrase")}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		b.t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.Bytes()
}

// bundle makes a bundle with one file and returns its digest.
func (b *bench) bundle() string {
	b.t.Helper()
	b.put("bundle.toml", "name = \"site\"\ndeclarations = [\"site.json\"]\n[[file]]\ntitle = \"tool\"\npath = \"tool\"\n")
	b.put("site.json", `{"schema": 1, "name": "site", "generation": "counter", "resources": [
		{"id": "tool", "type": "file", "path": "/opt/tool", "source": "file:tool"}]}`)
	b.put("tool", strings.Repeat("a tool\n", 1000))
	out := b.run(b.path("mesh-release"), "bundle", "create", "bundle.toml", "--version", "1", "--arch", architecture,
		"--counter", "7", "--keys", "keys", "--out", "site.bundle.tar", "--json")
	var info struct{ Digest string }
	if err := json.Unmarshal(out, &info); err != nil || info.Digest == "" {
		b.t.Fatalf("%v\n%s", err, out)
	}
	return info.Digest
}

var architecture = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
