//go:build machine

package powercut

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// size of a disk, of which only what is written takes space.
const size = 192 << 20

// newDisk makes the disk of a machine that has nothing but a place for the
// host's state.
func newDisk(t *testing.T, home string) string {
	t.Helper()
	disk := filepath.Join(home, "disk")
	seed := filepath.Join(home, "seed")
	for _, err := range []error{
		os.RemoveAll(seed),
		os.MkdirAll(filepath.Join(seed, filepath.Dir(state)), 0o755),
		os.Mkdir(filepath.Join(seed, state), 0o700),
		os.RemoveAll(disk),
		os.WriteFile(disk, nil, 0o600),
		os.Truncate(disk, size),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if msg, err := exec.Command("mke2fs", "-q", "-F", "-t", "ext4", "-d", seed, disk).CombinedOutput(); err != nil {
		t.Fatalf("mke2fs: %v\n%s", err, msg)
	}
	return disk
}

// mounted calls f with the disk mounted. The kernel replays the journal first,
// as it does when a machine comes back.
func mounted(t *testing.T, disk string, f func(root string)) {
	t.Helper()
	root := disk + ".mounted"
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command("mount", "-t", "ext4", "-o", "loop", disk, root).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v\n%s", err, msg)
	}
	up := true
	unmount := func() error {
		if !up {
			return nil
		}
		up = false
		if msg, err := exec.Command("umount", root).CombinedOutput(); err != nil {
			return fmt.Errorf("umount: %w\n%s", err, msg)
		}
		return nil
	}
	defer func() { // also when f ends the test
		if err := unmount(); err != nil {
			t.Error(err)
		}
	}()
	f(root)
	if err := unmount(); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command("e2fsck", "-fn", disk).CombinedOutput(); err != nil {
		t.Errorf("e2fsck: %v\n%s", err, msg)
	}
}
