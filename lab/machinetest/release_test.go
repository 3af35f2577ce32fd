//go:build machine

package machinetest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

func TestMain(m *testing.M) { machine.Main(cleaning{m}) }

// cleaning runs the tests, then removes the release they shared.
type cleaning struct{ tests *testing.M }

func (c cleaning) Run() int {
	defer func() {
		if made.dir != "" {
			_ = os.RemoveAll(made.dir)
		}
	}()
	return c.tests.Run()
}

// made is the release that all tests of this package share.
var made struct {
	once sync.Once
	dir  string
	dist string
	err  error

	mu sync.Mutex
	// others are releases of other versions, by version.
	others map[string]string
}

// release returns the folder with the artefacts of a release of this source.
func release(t *testing.T) string {
	t.Helper()
	machine.Require(t) // no release for tests that are skipped
	made.once.Do(func() {
		if made.dir, made.err = os.MkdirTemp("", "nox-release-"); made.err != nil {
			return
		}
		node := &firstnode.Node{
			Dir:   filepath.Join(made.dir, "node"),
			Std:   cli.Stdio{Out: os.Stderr, Err: os.Stderr},
			Clock: clock.System,
		}
		made.dist, made.err = node.Release(t.Context())
	})
	if made.err != nil {
		t.Fatalf("cannot make a release to test: %v", made.err)
	}
	return made.dist
}

// built returns a release of the version, of this source as edit leaves a copy of it
// (nil: as it is), by the publisher of release. Each is made once.
func built(t *testing.T, version string, edit func(source string)) string {
	t.Helper()
	publisher := filepath.Dir(release(t))
	made.mu.Lock()
	defer made.mu.Unlock()
	if dist := made.others[version]; dist != "" {
		return dist
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := strings.TrimSpace(string(module))
	if edit != nil {
		copied := t.TempDir()
		list := exec.Command("git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
		names, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
			b, err := os.ReadFile(filepath.Join(source, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed, and not yet from the list
			}
			to := filepath.Join(copied, name)
			if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, b, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		edit(copied)
		source = copied
	}
	out := filepath.Join(made.dir, "release-"+version)
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	build := exec.Command(filepath.Join(publisher, "bin/mesh-release"), "build", "--version", version, "--arch", arch,
		"--source", source, "--counter", strconv.FormatInt(time.Now().Unix(), 10), "--out", out,
		"--keys", filepath.Join(publisher, "keys"), "--passphrase-file", filepath.Join(publisher, "passphrase"))
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot make release %s: %v\n%s", version, err, msg)
	}
	if made.others == nil {
		made.others = map[string]string{}
	}
	made.others[version] = out
	return out
}

// artefact returns the one file of the release that the pattern names.
func artefact(t *testing.T, pattern string) string {
	t.Helper()
	return one(t, release(t), pattern)
}

// one returns the one file in the folder that the pattern names.
func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("the release has %d files %q, not one (%v)", len(found), pattern, err)
	}
	return found[0]
}
