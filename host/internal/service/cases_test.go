package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/loop"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func TestH05TheNewestOfAHundredIsThere(t *testing.T) {
	s := working(t, machine(t))
	for i := range 100 {
		if _, err := s.engine.Accept(t.Context(), store.Wanted{Source: store.SourceFile, Document: page("a", fmt.Sprint(i))}, false); err != nil {
			t.Fatal(err)
		}
		s.loop.Trigger(t.Context(), loop.TriggerDeclaration) // and some pass is at it
	}
	if _, err := s.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(s.Layout.Path("/srv/page")); err != nil || string(b) != "99" {
		t.Errorf("%q, %v", b, err)
	}
}

// passTwice passes between marks; the first pass may have something to do.
func passTwice(l layout.Layout) error {
	s, err := Open(context.Background(), Config{Layout: l, Clock: clock.System, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	s.served = true // it would collect at its end
	s.start(beat{})
	for range 2 {
		_, _ = os.Lstat("/nox-mark")
		r := s.loop.Pass(context.Background(), loop.TriggerTimer)
		if err := r.Err; err != nil || !allGood(r.Report.Resources) {
			return fmt.Errorf("%+v, %w", r.Report, err)
		}
	}
	_, _ = os.Lstat("/nox-mark")
	return s.Close()
}

// TestH06ASecondPassCallsNothingThatChanges looks at the calls of a whole pass.
func TestH06ASecondPassCallsNothingThatChanges(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil || exec.Command(strace, "-f", "-o", "/dev/null", "-e", "trace=none", "true").Run() != nil {
		t.Skip("strace is not here, or does not work")
	}
	cfg, log := machine(t), filepath.Join(t.TempDir(), "log")
	s := working(t, cfg)
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(strace, "-f", "-y", "-qq", "-s", "0", "-e", "signal=none", "-o", log, "-e",
		"trace=newfstatat,write,pwrite64,writev,sendto,sendmsg,fsync,fdatasync,syncfs,msync,ftruncate,execve,vfork,/rename.*,/link.*,/unlink.*,/symlink.*,/mkdir.*,/.*chmod.*,/.*chown.*,/utime.*,/.*setxattr", os.Args[0])
	c.Env = append(os.Environ(), "SERVICE_TEST_QUIET="+cfg.Layout.Root)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(b), "\"/nox-mark\"")
	if len(parts) != 4 {
		t.Fatalf("%d marks", len(parts)-1)
	}
	_, second, _ := strings.Cut(parts[2], "\n") // the rest of the line is the mark's
	for line := range strings.Lines(second) {
		// The runtime wakes itself by writing to an eventfd.
		if strings.Contains(line, "(") && !strings.Contains(line, "newfstatat(") && !strings.Contains(line, "[eventfd]>") {
			t.Errorf("the second pass calls %s", line)
		}
	}
}

// TestH07TenThousandPasses: neither memory nor descriptors grow.
func TestH07TenThousandPasses(t *testing.T) {
	if testing.Short() {
		t.Skip("short: ten thousand passes")
	}
	s := working(t, machine(t))
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	pass := func(n int) (heap uint64, descriptors int) {
		for range n {
			if _, err := s.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return m.HeapAlloc, len(all)
	}
	heap, descriptors := pass(500)
	heap2, descriptors2 := pass(10_000)
	t.Logf("%d bytes and %d descriptors, after 10,000 passes %d and %d", heap, descriptors, heap2, descriptors2)
	if heap2 > heap+1<<18 || descriptors2 > descriptors || runtime.NumGoroutine() > 50 { // 26 bytes a pass
		t.Errorf("%d bytes became %d, %d descriptors %d, with %d goroutines", heap, heap2, descriptors, descriptors2, runtime.NumGoroutine())
	}
}

// smallDisk mounts one of a mebibyte.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("nox-test", dir, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestH09StatusAnswersWhileTheDiskOfTheStateIsFull(t *testing.T) {
	cfg := machine(t)
	smallDisk(t, cfg.Layout.State())
	s := working(t, cfg)
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	answers := func(disk string) {
		t.Helper()
		if st, err := s.Status(t.Context()); err != nil || st.Owned != 1 || len(st.Off) != 0 {
			t.Errorf("%s: %+v, %v", disk, st, err)
		}
		if h, err := s.History(t.Context()); err != nil || len(h) == 0 {
			t.Errorf("%s: %d reports, %v", disk, len(h), err)
		}
		if _, err := s.Pass(t.Context()); err != nil {
			t.Errorf("%s: a pass: %v", disk, err)
		}
	}
	if err := os.WriteFile(filepath.Join(cfg.Layout.State(), "fill"), make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	answers("full")
	large := strings.Repeat("2", 200<<10)
	if _, err := s.Apply(t.Context(), page("a", large)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("full, another declaration: %v", err)
	}
	answers("full, after one that was not taken")
	// And so does a command, when no service runs.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err := connected(t, cfg).Status(t.Context()); err != nil || st.Owned != 1 || len(st.Off) != 0 {
		t.Errorf("a command: %+v, %v", st, err)
	}
}

// TestH13EndedAtAnyMoment: the host is told to end in the middle of an apply, and
// the next one goes on from what there is.
func TestH13EndedAtAnyMoment(t *testing.T) {
	times := 500
	if testing.Short() {
		times = 20
	}
	cfg := machine(t)
	document := func(i int) []byte {
		var all []string
		for n := range 5 {
			all = append(all, fmt.Sprintf(`{"id": "f%d", "type": "file", "path": "/srv/%d/%d", "content": "%d"}`, n, i%3, n, i))
		}
		return fmt.Appendf(nil, `{"schema": 1, "name": "a", "resources": [%s]}`, strings.Join(all, ","))
	}
	cut := 0
	for i := range times {
		s, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.start(beat{})
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _, err := s.Apply(ctx, document(i)); ended <- err }()
		<-time.After(rand.N(30 * time.Millisecond))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		cancel() // as the door does
		if <-ended != nil {
			cut++
		}
	}
	t.Logf("%d of %d were cut", cut, times)
	if cut == 0 {
		t.Error("none was ended in the middle: nothing was tested")
	}
	s := working(t, cfg)
	if r, err := s.Apply(t.Context(), document(times)); err != nil || !allGood(r.Resources) {
		t.Errorf("%+v, %v", r, err)
	}
	found, _ := filepath.Glob(cfg.Layout.Path("/srv/*/*"))
	hidden, _ := filepath.Glob(cfg.Layout.Path("/srv/*/.*"))
	if st, err := s.Status(t.Context()); err != nil || st.Owned != 5 || len(st.Off) != 0 || len(found) != 5 || len(hidden) != 0 {
		t.Errorf("%+v, %v; there is %q %q", st, err, found, hidden)
	}
}
