//go:build machine

package powercut

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// newHome makes a folder for the disks of this run, which nothing that the run
// started outlives, and sweeps those of runs that were killed.
func newHome(t *testing.T) string {
	t.Helper()
	cache, err := machine.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	homes := filepath.Join(cache, "powercut")
	if err := os.MkdirAll(homes, 0o700); err != nil {
		t.Fatal(err)
	}
	// Who sweeps must not find a home that is made but not yet locked.
	door, err := lock(filepath.Join(homes, "lock"), unix.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	old, err := filepath.Glob(filepath.Join(homes, "run-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, home := range old {
		l, err := lock(filepath.Join(home, "lock"), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.ENOENT) {
			continue // it lives, or went by itself meanwhile
		}
		if err == nil {
			err = remove(home)
			l.Close()
		}
		if err != nil {
			t.Fatalf("cannot sweep what a killed run left: %v", err)
		}
	}
	home, err := os.MkdirTemp(homes, "run-")
	if err != nil {
		t.Fatal(err)
	}
	l, err := lock(filepath.Join(home, "lock"), unix.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(home); err != nil {
			t.Errorf("this is left: %v", err)
		}
		l.Close()
	})
	return home
}

func lock(name string, how int) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// remove ends the machines that have a disk in home, unmounts the disks and
// removes them. The loop device of a mount goes with it.
func remove(home string) error {
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, file := range commands {
		command, err := os.ReadFile(file)
		if err != nil || !bytes.HasPrefix(command, []byte("qemu-system-")) || !bytes.Contains(command, []byte(home+"/")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			err = unix.Kill(pid, unix.SIGKILL)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		// The fifth field, proc_pid_mountinfo(5).
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], home+"/") {
			if err := unix.Unmount(f[4], unix.MNT_DETACH); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(home)
}
