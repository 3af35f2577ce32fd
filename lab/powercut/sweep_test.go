//go:build machine

package powercut

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWhatAKilledRunLeavesIsSwept makes what a test leaves that is killed while
// a machine runs and a disk is mounted: nobody holds its lock.
func TestWhatAKilledRunLeavesIsSwept(t *testing.T) {
	needs(t)
	dead, err := os.MkdirTemp(filepath.Dir(newHome(t)), "run-")
	if err != nil {
		t.Fatal(err)
	}
	disk, root := newDisk(t, dead), filepath.Join(dead, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command("mount", "-t", "ext4", "-o", "loop", disk, root).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v\n%s", err, msg)
	}
	machine := exec.Command("qemu-system-x86_64", "-accel", "tcg", "-S", "-nodefaults", "-display", "none", "-drive", "file="+disk+".2,format=raw,if=none,id=d")
	if err := os.WriteFile(disk+".2", make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := machine.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- machine.Wait() }()

	home := newHome(t)

	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("its machine ended with %v", err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
	if _, err := os.Stat(home); err != nil {
		t.Errorf("our own folder: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), dead) {
		t.Errorf("its disk is mounted (%v)", err)
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, l := range loops {
		if of, err := os.ReadFile(l); err == nil && strings.Contains(string(of), dead) {
			t.Errorf("its loop device is there: %s", of)
		}
	}
}
