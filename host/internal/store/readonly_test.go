package store

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// readOnly makes dir one nobody may write in, by a mount of its own, and returns
// how it ends.
func readOnly(t *testing.T, dir string) (writable func()) {
	t.Helper()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	remount := func(flags uintptr) {
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	remount(unix.MS_RDONLY)
	return func() { remount(0) }
}

// holding is a store with a record and a report in it, closed.
func holding(t *testing.T) (path string) {
	t.Helper()
	s, path := begin(t)
	if err := s.Commit(resource.Record{Key: "file:/a", ID: "a", Type: "file", Spec: fileSpec("/a", "")}); err != nil {
		t.Fatal(err)
	}
	if err := s.AddReport(link.Report{ID: "one"}, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func reads(t *testing.T, s *Store, at string) {
	t.Helper()
	if r, err := s.Records(); err != nil || len(r) != 1 || r[0].Key != "file:/a" {
		t.Errorf("%s: %+v, %v", at, r, err)
	}
	if r, err := s.Reports(); err != nil || len(r) != 1 || r[0].ID != "one" {
		t.Errorf("%s: %+v, %v", at, r, err)
	}
}

func TestH09AStoreThatIsReadOnlyIsRead(t *testing.T) {
	path := holding(t)
	writable := readOnly(t, filepath.Dir(path))
	s := reopen(t, path)
	reads(t, s, "read-only")
	if err := s.Writable(); !errors.Is(err, syscall.EROFS) {
		t.Errorf("why it is not written: %v", err)
	}
	if err := s.AddReport(link.Report{ID: "two"}, true); !errors.Is(err, syscall.EROFS) {
		t.Errorf("a change: %v", err)
	}
	reads(t, s, "after a change that failed")
	// A second one reads beside it, as a command does.
	second := reopen(t, path)
	reads(t, second, "a second reader")
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	writable()
	if err := s.Writable(); err != nil {
		t.Errorf("writable again: %v", err)
	}
	reads(t, s, "writable again")
	if err := s.AddReport(link.Report{ID: "two"}, true); err != nil {
		t.Errorf("writable again: %v", err)
	}
	if _, err := Open(path, noon, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrLocked) {
		t.Errorf("it writes, and another may open it: %v", err)
	}
	if got := SetAside(path); len(got) != 0 {
		t.Errorf("set aside: %q", got)
	}
}

// Who reads it keeps a writer out: the change is for later.
func TestH09AnotherReaderOnlyDelaysTheFirstChange(t *testing.T) {
	path := holding(t)
	writable := readOnly(t, filepath.Dir(path))
	s, other := reopen(t, path), reopen(t, path)
	writable()
	if err := s.AddReport(link.Report{ID: "two"}, true); !errors.Is(err, ErrLocked) {
		t.Errorf("%v", err)
	}
	reads(t, s, "after it")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.AddReport(link.Report{ID: "two"}, true); err != nil {
		t.Error(err)
	}
}

func TestH09ADamagedStoreThatIsReadOnlyIsSaidToBe(t *testing.T) {
	path := holding(t)
	bad := bytes.Repeat([]byte("no store "), 4000)
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	readOnly(t, filepath.Dir(path))
	_, err := Open(path, noon, slog.New(slog.DiscardHandler))
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("%v", err)
	}
	if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, bad) {
		t.Errorf("it is not what it was: %v", err)
	}
}

// The service holds it since before it became read-only: a mount of its own makes
// it so for the second alone.
func TestH09AStoreThatIsHeldIsSaidToBe(t *testing.T) {
	_, path := begin(t)
	other := t.TempDir()
	if err := unix.Mount(filepath.Dir(path), other, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(other, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("", other, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(other, "store.db"), noon, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrLocked) {
		t.Errorf("%v", err)
	}
}

// A security module, or an attribute of the file (chattr +i), keeps even root from
// writing it alone.
func TestH09AStoreThatMayNotBeWrittenIsRead(t *testing.T) {
	for _, errno := range []string{"EACCES", "EPERM"} {
		path := holding(t)
		out, err := opened(t, path, "openat:error="+errno+":when=1")
		if err != nil || !strings.Contains(out, "1 records <nil>") {
			t.Errorf("%s: %v\n%s", errno, err, out)
		}
		if aside := SetAside(path); len(aside) != 0 {
			t.Errorf("%s: set aside as %q", errno, aside)
		}
	}
}
