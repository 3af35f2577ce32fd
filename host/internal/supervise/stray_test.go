package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestR01OnlyWhatTheLauncherStartedIsAShim(t *testing.T) {
	dir := t.TempDir()
	launcher := filepath.Join(dir, "launcher", "mesh-host")
	over := filepath.Join(dir, "process", "web")
	for _, d := range []string{filepath.Dir(launcher), over} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("sleep(1) is not here")
	}
	b, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(launcher, b, 0o700); err != nil {
		t.Fatal(err)
	}
	start := func(program string) int {
		cmd := exec.Command(program, "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd.Process.Pid
	}
	stranger, ours := start(sleep), start(launcher)
	if !oursAlone(stranger) || launched(stranger, over) {
		t.Error("a program of this user that is not the launcher is taken for a shim")
	}
	if !launched(ours, over) {
		t.Error("what the launcher started is not known")
	}
	// A launcher that was replaced still runs the shims it started.
	if err := os.Remove(launcher); err != nil {
		t.Fatal(err)
	}
	if !launched(ours, over) {
		t.Error("what a replaced launcher started is not known")
	}
	if os.Geteuid() != 0 && oursAlone(1) {
		t.Error("another user's process is ours")
	}
}
