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

// What is damaged in part is read where nothing can be taken out, and taken out
// when it can.
func TestH09AReadOnlyStoreThatIsDamagedInPartIsRead(t *testing.T) {
	path := holding(t)
	s := reopen(t, path)
	if err := s.Accept(Wanted{Name: "x", Digest: "sha256:other", Document: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if err := s.AddReport(link.Report{ID: "two"}, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	spoil(t, path, bucketReports, number(2), []byte("{"))
	writable := readOnly(t, filepath.Dir(path))
	var log bytes.Buffer
	s, err := Open(path, noon, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !strings.Contains(log.String(), "damaged in part") {
		t.Errorf("log: %s", log.String())
	}
	leftOut := func(at string, reports int) {
		t.Helper()
		if w, err := s.Wanted(); err != nil || w != nil {
			t.Errorf("%s: the declaration in force: %+v, %v", at, w, err)
		}
		if r, err := s.Reports(); err != nil || len(r) != reports {
			t.Errorf("%s: %d reports, %v", at, len(r), err)
		}
		if u, err := s.Unsent(); err != nil || len(u) != reports {
			t.Errorf("%s: %d unsent, %v", at, len(u), err)
		}
	}
	leftOut("read-only", 1)
	reads(t, s, "read-only")
	writable()
	if err := s.AddReport(link.Report{ID: "three"}, true); err != nil {
		t.Fatal(err)
	}
	leftOut("written", 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	if s, err = Open(path, noon, slog.New(slog.NewTextHandler(&log, nil))); err != nil || log.Len() > 0 {
		t.Fatalf("it is not whole now: %v, %s", err, log.String())
	}
	leftOut("opened again", 2)
}

// The store is away for the moment in which it is to be opened for writing: who
// reads afterwards need not wait for somebody who writes.
func TestH09AStoreThatCouldNotBeOpenedAnewIsReadAgain(t *testing.T) {
	path := holding(t)
	writable := readOnly(t, filepath.Dir(path))
	s := reopen(t, path)
	writable()
	if err := errors.Join(os.Rename(path, path+".away"), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.AddReport(link.Report{ID: "two"}, true); err == nil || !strings.Contains(err.Error(), "it is empty") {
		t.Errorf("a change: %v", err)
	}
	if _, err := s.Records(); err == nil || !strings.Contains(err.Error(), "it is empty") {
		t.Errorf("a read: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Records(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that is gone is begun: %v", err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	reads(t, s, "back")
	if err := s.AddReport(link.Report{ID: "two"}, true); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Records(); err == nil {
		t.Error("one that is closed is read")
	}
}

// To ask is to change nothing: it is not opened anew, which another reader would
// keep it from.
func TestWhetherItCanBeWrittenIsAQuestion(t *testing.T) {
	path := holding(t)
	writable := readOnly(t, filepath.Dir(path))
	s, other := reopen(t, path), reopen(t, path)
	writable()
	if err := s.Writable(); err != nil {
		t.Error(err)
	}
	reads(t, s, "asked")
	reads(t, other, "beside it")
}
