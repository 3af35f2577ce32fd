package cosign

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

const passphrase = "correct horse"

// shared is what all tests use and none changes: mesh-release, a publisher's
// keys, a stranger's, and a release of this source for x86_64.
var shared struct {
	sync.Once
	dir, version string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// A bench is cosign and mesh-release in a folder with keys and a release, its
// own copy.
type bench struct {
	t      *testing.T
	dir    string
	cosign string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, cosign: tool.Need(t, "cosign")}
	if os.Geteuid() != 0 {
		t.Skip("needs root: cosign is given a network namespace")
	}
	for _, program := range []string{"unshare", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not here", program)
		}
	}
	shared.Do(func() { share(t, b.cosign) })
	if shared.version == "" {
		t.Fatal("there is no release to judge")
	}
	b.dir = t.TempDir()
	for _, name := range []string{"keys", "strangers", "dist"} {
		// A copy, not a link: tests change files.
		if out, err := exec.Command("cp", "-a", filepath.Join(shared.dir, name), b.dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	b.put("secret", passphrase)
	return b
}

// share makes what is shared.
func share(t *testing.T, cosign string) {
	t.Helper()
	source, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if shared.dir, err = os.MkdirTemp("", "nox-cosign-"); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: shared.dir, cosign: cosign}
	b.put("secret", passphrase)
	build := exec.Command("go", "build", "-o", shared.dir, "./release/cmd/mesh-release")
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, keys := range []string{"keys", "strangers"} {
		b.must(b.release("keys", "init", keys))
	}
	release := b.command(b.mesh(), "build", "--source", source, "--version", "1.0.0", "--counter", "1700000000",
		"--arch", "x86_64", "--keys", "keys", "--out", "dist")
	release.Env = append(os.Environ(), "NOX_PASSPHRASE_FILE="+b.path("secret"))
	b.must(b.run(release))
	out := b.must(b.run(b.command(cosign, "version", "--json")))
	var v struct {
		Version string `json:"gitVersion"`
	}
	if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &v); err != nil {
		t.Fatal(err)
	}
	shared.version = strings.TrimPrefix(v.Version, "v")
}

// An answer is how a program ended and all it printed.
type answer struct {
	command, out string
	code         int
}

func (b *bench) mesh() string            { return filepath.Join(shared.dir, "mesh-release") }
func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) command(program string, args ...string) *exec.Cmd {
	c := exec.CommandContext(b.t.Context(), program, args...)
	c.Dir = b.dir
	c.Env = []string{"LC_ALL=C", "HOME=" + b.dir, "NOX_PASSPHRASE_FILE=" + b.path("secret"), "PATH=/nowhere"}
	return c
}

func (b *bench) run(c *exec.Cmd) answer {
	b.t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return answer{strings.Join(c.Args, " "), out.String(), c.ProcessState.ExitCode()}
}

// release runs mesh-release, which finds no witness here.
func (b *bench) release(args ...string) answer {
	b.t.Helper()
	return b.run(b.command(b.mesh(), args...))
}

// sigstore runs cosign where there is no network, not even a loopback.
func (b *bench) sigstore(args ...string) answer {
	b.t.Helper()
	c := b.command("unshare", append([]string{"-n", b.cosign}, args...)...)
	c.Env = append(c.Env, "COSIGN_PASSWORD="+passphrase, "TUF_ROOT="+b.path("tuf"))
	return b.run(c)
}

// must holds that a program did what it was asked.
func (b *bench) must(a answer) string {
	b.t.Helper()
	if a.code != 0 {
		b.t.Fatalf("%s: exit %d\n%s", a.command, a.code, a.out)
	}
	return a.out
}

func (b *bench) put(name, content string) {
	b.t.Helper()
	if err := os.WriteFile(b.path(name), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

// flip changes one bit in the middle of a file.
func (b *bench) flip(name string) {
	b.t.Helper()
	content := []byte(b.get(name))
	content[len(content)/2] ^= 1
	b.put(name, string(content))
}
