package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// TestMain is also the process that TestH01ACollectionIsKilledAnywhere kills, and
// the one that TestH06ASecondPassCallsNothingThatChanges watches; TestRetireIsKilledAnywhere
// has its own.
func TestMain(m *testing.M) {
	for name, do := range map[string]func(layout.Layout) error{"SERVICE_TEST_COLLECT": collectOnce, "SERVICE_TEST_QUIET": passTwice, "SERVICE_TEST_RETIRE": retireOnce} {
		root := os.Getenv(name)
		if root == "" {
			continue
		}
		if err := do(layout.Layout{Root: root}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func collectOnce(l layout.Layout) error {
	s, err := Open(context.Background(), Config{Layout: l, Clock: clock.System, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	s.collector.Due()
	s.collector.Once(context.Background())
	return errors.Join(s.collector.Err(), s.Close())
}

// TestH01ACollectionIsKilledAnywhere kills it at each call that changes a directory
// or makes a change durable. Whatever is gone then, the host can still repair
// what is declared, give back what was there before, and be told again.
func TestH01ACollectionIsKilledAnywhere(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil || exec.Command(strace, "-f", "-o", "/dev/null", "-e", "trace=none", "true").Run() != nil {
		t.Skip("strace is not here, or does not work")
	}
	cfg := machine(t)
	p := newPublisher(t, cfg)
	page := cfg.Layout.Path("/srv/a")
	if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	second := p.bundle(2, map[string]string{"a": "two", "s": "shared"})
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.start(beat{})
	for _, b := range [][]byte{p.bundle(1, map[string]string{"a": "one", "s": "shared", "x": "only of the first"}), second} {
		if err := bootstrap(t.Context(), s, b); err != nil {
			t.Fatal(err)
		}
	}
	s.served = true // it ends without a collection, as if it were killed
	s.stop()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	kills := 0
	for _, calls := range []string{"rename,renameat,renameat2", "unlink,unlinkat", "fsync,fdatasync"} {
		for n := 1; ; n++ {
			l := layout.Layout{Root: t.TempDir()}
			if err := os.CopyFS(l.Root, os.DirFS(cfg.Layout.Root)); err != nil {
				t.Fatal(err)
			}
			modes(t, l.Root)
			at := fmt.Sprintf("killed at %s %d", calls, n)
			c := exec.Command(strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+calls,
				"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, n), os.Args[0])
			c.Env = append(os.Environ(), "SERVICE_TEST_COLLECT="+l.Root)
			out, err := c.CombinedOutput()
			var exit *exec.ExitError
			killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
			if err != nil && !killed {
				t.Fatalf("%s: %v\n%s", at, err, out)
			}
			restores(t, at, Config{Layout: l, Clock: clock.System, Log: slog.New(slog.DiscardHandler)}, second)
			if !killed {
				break
			}
			if kills++; n > 100 || t.Failed() {
				t.FailNow()
			}
		}
	}
	if kills < 6 {
		t.Errorf("only %d kills hit", kills)
	}
}

// modes sets what os.CopyFS does not keep.
func modes(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "var"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// restores wants a machine of which everything was taken away to be as declared
// again, and then as it was before the host came.
func restores(t *testing.T, at string, cfg Config, inForce []byte) {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	s.start(beat{})
	defer s.Close()
	for _, name := range []string{"a", "s"} {
		if err := os.Remove(cfg.Layout.Path("/srv/" + name)); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
	}
	if r, err := s.Pass(t.Context()); err != nil || !allGood(r.Resources) {
		t.Errorf("%s: %+v %v", at, r.Resources, err)
	}
	if b, err := os.ReadFile(cfg.Layout.Path("/srv/a")); err != nil || string(b) != "two" {
		t.Errorf("%s: %q %v", at, b, err)
	}
	if err := bootstrap(t.Context(), s, inForce); err != nil {
		t.Errorf("%s: the bundle in force again: %v", at, err)
	}
	if collect(t, s); holds(s, "one") || holds(s, "only of the first") || !holds(s, "two") || !holds(s, "shared") {
		t.Errorf("%s: the next collection did not go on", at)
	}
	if _, err := s.Apply(t.Context(), []byte(`{"schema":1,"name":"none","resources":[]}`)); err != nil {
		t.Errorf("%s: %v", at, err)
	}
	if b, err := os.ReadFile(cfg.Layout.Path("/srv/a")); err != nil || string(b) != "theirs" {
		t.Errorf("%s: what was there before: %q %v", at, b, err)
	}
	if r := collect(t, s); r.Blobs != 0 {
		t.Errorf("%s: %d blobs stay that nobody needs", at, r.Blobs)
	}
}
