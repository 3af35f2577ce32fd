package content

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWhatCannotBeReadIsNotDamaged: reading /proc/self/mem from its beginning is
// EIO for everybody, and a loop of symlinks cannot be looked at.
func TestWhatCannotBeReadIsNotDamaged(t *testing.T) {
	for name, want := range map[string]error{"/proc/self/mem": unix.EIO, "index.json": unix.ELOOP} {
		s := open(t, t.TempDir())
		mark(t, s, putTree(t, s, "b", "one"), "b")
		index := filepath.Join(s.Dir(), "index.json")
		good, err := os.ReadFile(index)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(index); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(name, index); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(s.Dir()); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Collect(ctx); !errors.Is(err, want) || !has(s, "one") {
			t.Errorf("%s: %v", name, err)
		}
		if to, err := os.Readlink(index); err != nil || to != name {
			t.Errorf("%s: it was touched: %v", name, err)
		}
		if _, err := os.Lstat(index + damagedSuffix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: it was set aside (%v)", name, err)
		}
		// It can be read again: nothing was forgotten.
		if err := os.Remove(index); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(index, good, 0o600); err != nil {
			t.Fatal(err)
		}
		if marks, err := open(t, s.Dir()).Marks(); err != nil || len(marks) != 1 {
			t.Errorf("%s: %v %v", name, marks, err)
		}
	}
}

func TestWhatWasReadAndIsWrongIsSetAside(t *testing.T) {
	for name, spoil := range map[string]func(string) error{
		"no JSON":     func(p string) error { return os.WriteFile(p, []byte(`{"manifests":[`), 0o600) },
		"empty":       func(p string) error { return os.Truncate(p, 0) },
		"too large":   func(p string) error { return os.Truncate(p, maxIndex+1) },
		"a directory": func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
	} {
		s := open(t, t.TempDir())
		mark(t, s, putTree(t, s, "b", "one"), "b")
		if err := spoil(filepath.Join(s.Dir(), "index.json")); err != nil {
			t.Fatal(err)
		}
		s = open(t, s.Dir())
		if marks, err := s.Marks(); err != nil || len(marks) != 0 || !has(s, "one") {
			t.Errorf("%s: %v %v", name, marks, err)
		}
		if _, err := s.Collect(ctx); err == nil || !strings.Contains(err.Error(), "its marks were damaged") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAStrangerInStagingStopsNobody: it is called like a part and is none.
func TestAStrangerInStagingStopsNobody(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, "garbage")
	staging := filepath.Join(s.Dir(), stagingDir)
	if err := os.Mkdir(filepath.Join(staging, ".dir.part"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(staging, ".link.part")); err != nil {
		t.Fatal(err)
	}
	if r, err := open(t, s.Dir()).Collect(ctx); err != nil || r.Parts != 0 || len(r.Removed) != 1 || staged(t, s) != 2 {
		t.Errorf("%+v %v", r, err)
	}
}

// TestAMarkThatCouldNotBeReadAgainIsNotWritten: it would be taken for damage, and
// all marks with it.
func TestAMarkThatCouldNotBeReadAgainIsNotWritten(t *testing.T) {
	s := open(t, t.TempDir())
	main := putTree(t, s, "b", "one")
	mark(t, s, main, "b")
	if err := s.Mark(main, strings.Repeat("n", maxIndex)); err == nil || !strings.Contains(err.Error(), "too many marks") {
		t.Errorf("%v", err)
	}
	if marks, err := open(t, s.Dir()).Marks(); err != nil || len(marks) != 1 {
		t.Errorf("%v %v", marks, err)
	}
}
