package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestFolderOfALivingShimIsNotDiscarded(t *testing.T) {
	b := newBench(t, "live")
	shim := b.up()
	b.phase(Running)
	if err := Discard(b.dir); !errors.Is(err, ErrHeld) {
		t.Errorf("Discard says %v", err)
	}
	b.down(shim)
	for range 2 {
		if err := Discard(b.dir); err != nil {
			t.Fatal(err)
		}
		if left := names(t, filepath.Dir(b.dir)); len(left) != 0 {
			t.Errorf("left: %q", left)
		}
	}
}

func TestWhatACrashLeftAsideIsSwept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "web")
	for _, d := range []string{dir, aside(dir)} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, LockFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Discard(dir); err != nil {
		t.Fatal(err)
	}
	if left := names(t, filepath.Dir(dir)); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// A shim that opened the lock as its folder was discarded.
func TestLockOfADiscardedFolderIsNobodys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "web")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := acquire(dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer l.file.Close()
	if there, err := l.there(); err != nil || !there {
		t.Errorf("the lock is there: %v, %v", there, err)
	}
	if err := os.Rename(dir, aside(dir)); err != nil {
		t.Fatal(err)
	}
	if there, err := l.there(); err != nil || there {
		t.Errorf("the folder is gone, and its lock is there: %v, %v", there, err)
	}
	if err := l.renew(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("renew says %v", err)
	}
}
