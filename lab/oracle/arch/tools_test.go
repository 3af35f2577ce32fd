package arch

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/machine"
)

func TestMain(m *testing.M) { machine.Main(cleaning{m}) }

// cleaning runs the tests, then removes the programs they shared.
type cleaning struct{ tests *testing.M }

func (c cleaning) Run() int {
	defer func() { _ = os.RemoveAll(packer.dir) }()
	return c.tests.Run()
}

// needs skips the test unless it runs as root and the programs are here.
func needs(t testing.TB, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: pacman chowns and chroots")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not here", p)
		}
	}
}

// try runs a program with nothing of our environment but PATH, in English.
func try(t testing.TB, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "HOME=/dev/null", "SOURCE_DATE_EPOCH=" + epoch}, env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if err != nil {
		t.Logf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out.String(), errOut.String())
	}
	return out.String() + errOut.String(), err
}

func must(t testing.TB, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := try(t, dir, env, name, args...)
	if err != nil {
		t.FailNow()
	}
	return out
}

// epoch is the time of all packages here.
const epoch = "1700000000"

// source is the top of the source tree.
func source(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// goEnv is what the go command needs of our environment.
func goEnv(t testing.TB) []string {
	t.Helper()
	names := []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB"}
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		env = append(env, names[i]+"="+line)
	}
	return append(env, "GOTOOLCHAIN=local", "GOFLAGS=")
}

var packer struct {
	sync.Once
	dir, path string
}

// pack packs one package into dir with the packer of this source, and returns
// the path of the file.
func pack(t testing.TB, dir string, words ...string) string {
	t.Helper()
	packer.Do(func() {
		var err error
		if packer.dir, err = os.MkdirTemp("", "nox-packone-"); err != nil {
			t.Fatal(err)
		}
		packer.path = filepath.Join(packer.dir, "packone")
		must(t, source(t), append(goEnv(t), "CGO_ENABLED=0"), "go", "build", "-o", packer.path, "./release/internal/arch/packone")
	})
	name := must(t, source(t), nil, packer.path, append(words, dir)...)
	return filepath.Join(dir, strings.TrimSpace(name))
}

// packNfpm is pack of a package in nfpm's words.
func packNfpm(t testing.TB, dir, yaml string) string {
	t.Helper()
	return pack(t, dir, "nfpm", file(t, filepath.Join(t.TempDir(), "nfpm.yaml"), yaml))
}

// stubHost is a program that describes itself, and packs fast.
func stubHost(t testing.TB) string {
	t.Helper()
	p := file(t, filepath.Join(t.TempDir(), "mesh-host"), "#!/bin/sh\necho \"$@\"\n")
	if err := os.Chmod(p, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// file makes a file with its folders.
func file(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
