package installer

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// The system calls that change a directory or make a change durable. A kill
// before each of them is a kill at every instant that can be told from
// another.
var points = []string{"openat", "mkdirat", "renameat,renameat2,rename", "fsync", "unlinkat", "fchmod"}

// killedAt runs this test binary as an installer, and kills it at the nth call of
// one of points; it reports whether it got that far.
func killedAt(t *testing.T, strace, calls string, n int, env ...string) bool {
	t.Helper()
	cmd := exec.Command(strace, "-f", "-qq", "-o", "/dev/null",
		"-e", "trace="+calls, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, n), os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() && st.Signal() == syscall.SIGKILL {
		return true
	}
	if strings.Contains(string(out), "ptrace") || strings.Contains(string(out), "strace:") {
		t.Skipf("strace does not work here: %s", out)
	}
	t.Fatalf("%s %d: %v\n%s", calls, n, err, out)
	return false
}

func TestKillAnywhere(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not here")
	}
	p := newPublisher(t)
	// A script, so that its trial makes few system calls of its own.
	old := p.unpacked(t, "1.0.0", []byte("#!/bin/sh\necho mesh-host 1.0.0\n"), nil)
	p.rotate(t)
	from := p.unpacked(t, "1.1.0", []byte("#!/bin/sh\necho mesh-host 1.1.0\n"), nil)
	kills := 0
	for _, start := range []string{"install", "upgrade", "uninstall"} {
		clean := image(t)
		bare := tree(t, clean.Root, false)
		if start != "install" {
			mustInstall(t, clean, old)
		}
		mustInstall(t, clean, from)
		want := tree(t, clean.Root, false)
		for _, calls := range points {
			step := 1
			if calls == "openat" && os.Getenv("NOX_EVERY_KILL") == "" {
				// There are hundreds, most of them of the Go runtime's start.
				step = 13
			}
			for n := 1 + len(calls)%step; ; n += step {
				l := image(t)
				env := []string{"INSTALLER_TEST_ROOT=" + l.Root, "INSTALLER_TEST_FROM=" + from}
				switch start {
				case "upgrade":
					mustInstall(t, l, old)
				case "uninstall":
					mustInstall(t, l, old)
					mustInstall(t, l, from)
					env[1] = "INSTALLER_TEST_FROM="
				}
				killed := killedAt(t, strace, calls, n, env...)
				at := fmt.Sprintf("%s, killed at %s %d", start, calls, n)
				if start != "uninstall" && n%2 == 0 {
					again(t, l, from, want, at)
				}
				if start != "uninstall" || killed {
					gone(t, l, bare, at)
				}
				if !killed {
					break
				}
				kills++
			}
		}
	}
	if kills < 10 {
		t.Errorf("only %d kills hit", kills)
	}
}

// again: a second run completes what a killed one left. (Every other time the
// uninstall has to do with what the killed one left.)
func again(t *testing.T, l layout.Layout, from, want, at string) {
	t.Helper()
	mustInstall(t, l, from)
	if got := tree(t, l.Root, false); got != want {
		t.Errorf("%s: installed again:\n%s", at, diff(want, got))
	}
}

// gone: an uninstall, also the second half of a killed one, leaves what was
// there before.
func gone(t *testing.T, l layout.Layout, bare, at string) {
	t.Helper()
	_, err := os.Stat(l.State())
	installed := err == nil
	if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Purge: true}); err != nil && installed {
		t.Fatalf("%s: %v", at, err)
	}
	if got := tree(t, l.Root, false); got != bare {
		t.Errorf("%s: uninstalled:\n%s", at, diff(bare, got))
	}
}
