//go:build machine

package machinetest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

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

// artefact returns the one file of the release that the pattern names.
func artefact(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(release(t), pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("the release has %d files %q, not one (%v)", len(found), pattern, err)
	}
	return found[0]
}
