package restore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/restore"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// TestMain is also the command that stages a backup, and the control plane that takes
// it up, for TestD01ARestoreIsKilledAnywhere to kill.
func TestMain(m *testing.M) {
	l := layout.Layout{Root: os.Getenv("RESTORE_TEST_ROOT")}
	if l.Root == "" {
		os.Exit(m.Run())
	}
	err := errors.New("no such deed")
	switch os.Getenv("RESTORE_TEST_DEED") {
	case "stage":
		err = stageFile(l)
	case "take up":
		var release func()
		if _, release, err = restore.TakeUp(l); err == nil {
			release()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func stageFile(l layout.Layout) error {
	there, err := restore.Look(l)
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(l.Root, "backup.tar"))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = restore.Stage(context.Background(), f, restore.Options{Layout: l, There: there, Now: start.Add(time.Hour), Replace: true})
	return err
}

// deed does something in another process, which is killed when it makes one of the
// calls for the nth time; it reports whether it was.
func deed(t *testing.T, what string, l layout.Layout, calls string, n int) (killed bool) {
	t.Helper()
	c := exec.Command(os.Args[0])
	if n > 0 {
		c = exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace="+calls, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, n), os.Args[0])
	}
	c.Env = append(os.Environ(), "RESTORE_TEST_ROOT="+l.Root, "RESTORE_TEST_DEED="+what)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	killed = errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if err != nil && !killed {
		t.Fatalf("%s, killed at %s %d: %v\n%s", what, calls, n, err, out)
	}
	return killed
}

// TestD01ARestoreIsKilledAnywhere kills it at each call that changes a directory or
// makes a change durable. There is the old control plane or the new one, whole; the
// epoch is raised once, and what was there is never lost.
func TestD01ARestoreIsKilledAnywhere(t *testing.T) {
	if err := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=none", "true").Run(); err != nil {
		t.Skipf("strace is not here, or does not work: %v", err)
	}
	old := newPlane(t, "a", "b")
	file := old.backup(t)
	fresh := newPlane(t, "x")
	must(t, os.WriteFile(filepath.Join(fresh.Root, "backup.tar"), file, 0o600))
	was := tree(t, fresh.ControllerState())
	kills := map[string]int{}
	for _, what := range []string{"stage", "take up"} {
		for _, calls := range []string{"rename,renameat,renameat2", "unlink,unlinkat,rmdir", "fsync,fdatasync", "mkdir,mkdirat,link,linkat"} {
			for n := 1; ; n++ {
				p := plane{layout.Layout{Root: t.TempDir()}, fresh.mesh, fresh.pin}
				if out, err := exec.Command("cp", "-a", fresh.Root+"/.", p.Root).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if what == "take up" {
					deed(t, "stage", p.Layout, "", 0)
				}
				at := fmt.Sprintf("%s, killed at %s %d", what, calls, n)
				killed := deed(t, what, p.Layout, calls, n)
				p.afterKill(t, at, old, was)
				if !killed {
					break
				}
				if kills[what]++; n > 200 || t.Failed() {
					t.FailNow()
				}
			}
		}
	}
	t.Logf("%v", kills)
	if kills["stage"] < 20 || kills["take up"] < 10 {
		t.Errorf("only %v kills hit", kills)
	}
}

func (p plane) afterKill(t *testing.T, at string, old plane, was map[string]string) {
	t.Helper()
	deed(t, "take up", p.Layout, "", 0)
	mesh, nodes, restores := p.now(t)
	if mesh.ID == p.mesh.ID { // nothing was laid down
		if mesh.Epoch != 1 || strings.Join(nodes, " ") != "x" {
			t.Errorf("%s: the old one is not as it was: epoch %d, %q", at, mesh.Epoch, nodes)
		}
		now := tree(t, p.ControllerState())
		for name, text := range was {
			if now[name] != text {
				t.Errorf("%s: %q is not as it was", at, name)
			}
		}
		// The same command again succeeds.
		b, err := os.ReadFile(filepath.Join(p.Root, "backup.tar"))
		must(t, err)
		if _, err := p.stage(t, b, replacing); err != nil {
			t.Fatalf("%s, and again: %v; %s", at, err, fault.RemedyOf(err))
		}
		p.takeUp(t)
		mesh, nodes, restores = p.now(t)
	}
	if mesh.ID != old.mesh.ID || mesh.Epoch != 2 || restores != 1 || strings.Join(nodes, " ") != "a b" || !bytes.Equal(mesh.RootKey, old.mesh.RootKey) {
		t.Errorf("%s: epoch %d, %d restores, %q", at, mesh.Epoch, restores, nodes)
	}
	formers, _ := filepath.Glob(filepath.Join(p.ControllerState(), "former-*"))
	if len(formers) != 1 {
		t.Fatalf("%s: set aside: %q", at, formers)
	}
	same(t, at, was, tree(t, formers[0]))
	left, _ := filepath.Glob(filepath.Join(p.ControllerState(), "restored*"))
	if len(left) != 0 {
		t.Errorf("%s: left: %q", at, left)
	}
}
