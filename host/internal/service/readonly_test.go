package service

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/replace"
)

// disk mounts a file system of its own, on a device, and returns a way to mount
// it otherwise.
func disk(t *testing.T, dir string) (remount func(option string)) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "disk")
	for _, c := range [][]string{
		{"truncate", "-s", "16M", image}, {"mke2fs", "-q", "-F", "-t", "ext4", image}, {"mount", "-o", "loop", image, dir},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("a disk of a test's own cannot be had here: %s: %v %s", c[0], err, out)
		}
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return func(option string) {
		t.Helper()
		if out, err := exec.Command("mount", "-o", "remount,"+option, dir).CombinedOutput(); err != nil {
			t.Fatalf("remount,%s: %v %s", option, err, out)
		}
	}
}

// answersReadOnly: every question is answered, and the reason is in the status.
func answersReadOnly(t *testing.T, h Host, at string, off int) {
	t.Helper()
	st, err := h.Status(t.Context())
	if err != nil || st.Owned != 1 || len(st.Off) != off || st.Declaration == nil || st.Last == nil {
		t.Errorf("%s: %+v, %v", at, st, err)
	}
	if !slices.ContainsFunc(st.Warnings, func(w string) bool { return strings.Contains(w, "read-only file system") }) {
		t.Errorf("%s: the reason is not said: %q", at, st.Warnings)
	}
	if o, err := h.Owned(t.Context()); err != nil || len(o) != 1 {
		t.Errorf("%s: owned %+v, %v", at, o, err)
	}
	if r, err := h.History(t.Context()); err != nil || len(r) == 0 {
		t.Errorf("%s: %d reports, %v", at, len(r), err)
	}
}

// TestH09StatusAnswersWhileTheStateIsReadOnly: the kernel makes the file system
// read-only under a host that works, as it does after an error of the disk
// (errors=remount-ro of ext4(5); the option abort is such an error), and a
// command finds it mounted so.
func TestH09StatusAnswersWhileTheStateIsReadOnly(t *testing.T) {
	cfg := machine(t)
	remount := disk(t, cfg.Layout.State())
	s := working(t, cfg)
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	remount("abort")
	if _, err := s.Pass(t.Context()); err != nil {
		t.Errorf("a pass that has nothing to do: %v", err)
	}
	drift := func() {
		t.Helper()
		if err := os.WriteFile(cfg.Layout.Path("/srv/page"), []byte("theirs"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	drift()
	if _, err := s.Pass(t.Context()); !errors.Is(err, syscall.EROFS) {
		t.Errorf("a pass with something to do: %v", err)
	}
	answersReadOnly(t, s, "while it works", 1)
	if _, err := s.Apply(t.Context(), page("a", "2")); !errors.Is(err, syscall.EROFS) {
		t.Errorf("another declaration: %v", err)
	}
	answersReadOnly(t, s, "after one that was not taken", 1)
	if b, err := os.ReadFile(cfg.Layout.Path("/srv/page")); err != nil || string(b) != "theirs" {
		t.Errorf("changed without a record: %q, %v", b, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestH09ACommandAnswersWhileTheStateIsReadOnly(t *testing.T) {
	cfg := machine(t)
	remount := disk(t, cfg.Layout.State())
	s := working(t, cfg)
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	remount("ro")
	command, done, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	answersReadOnly(t, command, "a command", 0)
	answersReadOnly(t, connected(t, cfg), "a second one beside it", 0)
	if _, err := command.Apply(t.Context(), page("a", "2")); !errors.Is(err, syscall.EROFS) {
		t.Errorf("another declaration: %v", err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}

// TestH09APassThatCannotBeRecordedEndsAsAnyOther: it is said once, who waits for a
// pass is woken, and a new version is started, which may be what helps.
func TestH09APassThatCannotBeRecordedEndsAsAnyOther(t *testing.T) {
	cfg := machine(t)
	remount := disk(t, cfg.Layout.State())
	var log bytes.Buffer
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s.self.watch, err = replace.Running(replace.Config{}); err != nil {
		t.Fatal(err)
	}
	s.start(beat{})
	closed := sync.OnceFunc(func() { s.Close() })
	defer closed()
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	remount("abort")
	if err := os.Remove(cfg.Layout.Path("/srv/page")); err != nil {
		t.Fatal(err)
	}
	pass := func() {
		t.Helper()
		s.mu.Lock()
		news := s.news
		s.mu.Unlock()
		if _, err := s.Pass(t.Context()); !errors.Is(err, syscall.EROFS) {
			t.Errorf("a pass with something to do: %v", err)
		}
		select {
		case <-news:
		default:
			t.Error("who waits for a pass is not woken")
		}
	}
	pass()
	select {
	case <-s.self.replaced:
		t.Error("it ends, and nothing replaced it")
	default:
	}
	// The program of the tests is replaced, and put back.
	path := s.self.watch.Path()
	if err := errors.Join(os.Rename(path, path+".aside"), os.WriteFile(path, []byte("another"), 0o755)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.Rename(path+".aside", path); err != nil {
			t.Error(err)
		}
	}()
	pass()
	select {
	case <-s.self.replaced:
	case <-time.After(20 * time.Second):
		t.Error("a new version is not started")
	}
	closed()
	if n := strings.Count(log.String(), "is not in the history"); n != 1 {
		t.Errorf("it is said %d times that a report is lost:\n%s", n, log.String())
	}
}

// TestH09TheServiceGoesOnWhenTheStateCanBeWritten again, without a restart.
func TestH09TheServiceGoesOnWhenTheStateCanBeWritten(t *testing.T) {
	cfg := machine(t)
	remount := disk(t, cfg.Layout.State())
	s := working(t, cfg)
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(cfg.Layout.Path("/srv/page")); err != nil {
		t.Fatal(err)
	}
	remount("ro")
	s = working(t, cfg)
	if _, err := s.Pass(t.Context()); !errors.Is(err, syscall.EROFS) {
		t.Errorf("a pass with something to do: %v", err)
	}
	answersReadOnly(t, s, "it came up so", 1)
	remount("rw")
	r, err := s.Pass(t.Context())
	if err != nil || len(r.Resources) != 1 || r.Resources[0].Outcome != declaration.Repaired {
		t.Errorf("%+v, %v", r.Resources, err)
	}
	if st, err := s.Status(t.Context()); err != nil || len(st.Off)+len(st.Warnings) != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	if h, err := s.History(t.Context()); err != nil || len(h) != 2 {
		t.Errorf("%d reports, %v", len(h), err)
	}
}

// What a pass did and could not be recorded is made up for by the next, though it
// finds nothing new.
func TestH09APassThatWasNotRecordedIsFollowedByOneThatIs(t *testing.T) {
	s := working(t, machine(t))
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.unrecorded = syscall.ENOSPC
	s.mu.Unlock()
	if st, err := s.Status(t.Context()); err != nil || len(st.Warnings) != 1 || !strings.Contains(st.Warnings[0], "no space left") {
		t.Errorf("%+v, %v", st, err)
	}
	for range 2 {
		if _, err := s.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	h, err := s.History(t.Context())
	if err != nil || len(h) != 2 {
		t.Errorf("%d reports, %v", len(h), err)
	}
	if st, err := s.Status(t.Context()); err != nil || len(st.Warnings) != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestH09AStoreThatCannotBeWrittenIsNotReady: an ext4 that had an error says that it
// may be written (access(2)), and cannot be.
func TestH09AStoreThatCannotBeWrittenIsNotReady(t *testing.T) {
	cfg := machine(t)
	remount := disk(t, cfg.Layout.State())
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.start(beat{})
	defer s.Close()
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	if err := s.store.Ready(); err != nil {
		t.Errorf("in order: %v", err)
	}
	remount("abort")
	if err := s.store.Ready(); err == nil {
		t.Error("after an error of its file system it is ready")
	}
	if records, err := s.store.Records(); err != nil || len(records) != 1 {
		t.Errorf("it is not read any more: %d records, %v", len(records), err)
	}
}
