package resourcetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// rootVariable tells the test binary, started again, to apply below that root
// and to do nothing else.
const rootVariable = "NOX_RESOURCETEST_ROOT"

// ready is how the process that applies says that it can be killed from now on.
const ready = "ready to apply on thread "

// mutating are the system calls that leave something behind. The process that
// applies is killed as it enters each of them, in turn. One that makes a file
// (openat) is not among them: it is between two that are, and most calls of it
// only read.
var mutating = []string{
	"write", "fsync", "syncfs", "ftruncate", "fchmod", "fchmodat", "fchown", "fchownat", "utimensat",
	"renameat", "renameat2", "mkdirat", "unlinkat", "symlinkat", "linkat", "fsetxattr",
}

// applyAndDie is the other side of killAt: in the process that was started for
// it, it applies, and reports true.
func applyAndDie(t *testing.T, s Suite) bool {
	root := os.Getenv(rootVariable)
	if root == "" {
		return false
	}
	l := layout.Layout{Root: root}
	kind, want := s.New(t, l), s.Want(l)
	// Only this thread is traced: not those of the runtime, and no process
	// that the kind starts and means to leave.
	runtime.LockOSThread()
	fmt.Printf("%s%d\n", ready, syscall.Gettid())
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	found, err := kind.Check(context.Background(), want, nil)
	if err == nil && !found.Same {
		err = kind.Apply(context.Background(), want, nil, found)
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

func (s Suite) killed(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	if testing.Short() {
		t.Skip("short: this starts a process for each system call that writes")
	}
	// What is there in the end when nothing went wrong, and the way to it.
	clean := s.bench(t)
	trace := filepath.Join(t.TempDir(), "trace")
	if clean.applyUnder(strace, "-o", trace, "-e", "trace="+strings.Join(mutating, ",")) {
		t.Fatal("the process that applies was killed by somebody else")
	}
	clean.same(nil, "applied by another process")
	want := Snapshot(t, clean.l.Root).Names()
	calls, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}

	var kills atomic.Int32
	t.Run("at", func(t *testing.T) {
		for _, call := range mutating {
			for n := range strings.Count("\n"+string(calls), "\n"+call+"(") {
				t.Run(fmt.Sprintf("%s-%d", call, n+1), func(t *testing.T) {
					t.Parallel()
					if s.killAt(t, strace, call, n+1, want) {
						kills.Add(1)
					}
				})
			}
		}
	})
	if kills.Load() == 0 && !t.Failed() {
		t.Error("the process was never killed: nothing was tested")
	}
}

// killAt kills an Apply at the nth call and reports whether it came so far;
// then the next pass must make everything as if nothing had happened.
func (s Suite) killAt(t *testing.T, strace, call string, n int, want []string) bool {
	b := s.bench(t)
	killed := b.applyUnder(strace, "-o", "/dev/null", "-e", "trace="+call,
		"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n))
	if st := b.check(nil); !st.Same {
		if st.Foreign {
			t.Fatalf("Check calls it foreign: %+v", st)
		}
		b.apply(nil)
	}
	if got := Snapshot(t, b.l.Root).Names(); !slices.Equal(got, want) {
		t.Fatalf("the tree is\n%q\nwant\n%q", got, want)
	}
	b.remove(b.record(nil))
	return killed
}

// applyUnder applies in a process of its own, traced, and reports whether it
// was killed.
func (b *bench) applyUnder(strace string, options ...string) (killed bool) {
	b.t.Helper()
	top, _, _ := strings.Cut(b.t.Name(), "/")
	cmd := exec.Command(os.Args[0], "-test.run=^"+top+"$", "-test.count=1", "-test.v=false")
	cmd.Env = append(os.Environ(), rootVariable+"="+b.l.Root)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	thread, ok := strings.CutPrefix(strings.TrimSpace(line), ready)
	if !ok {
		rest, _ := io.ReadAll(lines)
		b.t.Fatalf("the process that applies says %q, %v\n%s", line, err, rest)
	}

	tracer := exec.Command(strace, append(options, "-p", thread)...)
	said, err := tracer.StderrPipe()
	if err = errors.Join(err, tracer.Start()); err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = tracer.Process.Kill(); _ = tracer.Wait() }()
	line, _ = bufio.NewReader(said).ReadString('\n')
	if strings.Contains(line, "ptrace(") || strings.Contains(line, "not permitted") {
		b.t.Skipf("strace may not trace here: %s", line)
	}
	if !strings.Contains(line, "attached") {
		b.t.Fatalf("strace says %q", line)
	}

	if _, err := in.Write([]byte("x")); err != nil {
		b.t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	err = cmd.Wait()
	_, _ = io.Copy(io.Discard, said) // strace ends with what it traced
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		b.t.Fatalf("the process that applies failed by itself: %v\n%s", err, rest)
	}
	return false
}
