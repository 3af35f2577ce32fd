package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dieAt ends the shim by SIGKILL at the step whose name is in the file die under the
// root, once.
func dieAt(args []string) func(string) {
	a, err := parseArguments(args)
	if err != nil {
		return func(string) {}
	}
	return func(step string) {
		path := filepath.Join(a.root, "die")
		if want, err := os.ReadFile(path); err == nil && string(want) == step {
			os.Remove(path)
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
}

// A trial is a bench whose program is a script that can be replaced.
type trial struct {
	*bench
}

// Executables. Each says that it was started; fails is what fails when the file
// fail is there.
const (
	good  = "#!/bin/sh\necho good >>$NOX_ROOT/ran\nexec sleep 100000\n"
	other = "#!/bin/sh\necho other >>$NOX_ROOT/ran\nexec sleep 100000\n"
	bad   = "#!/bin/sh\necho bad >>$NOX_ROOT/ran\nexit 7\n"
	fails = "#!/bin/sh\necho fails >>$NOX_ROOT/ran\n[ -e $NOX_ROOT/fail ] && exit 9\nexec sleep 100000\n"
)

func newTrial(t *testing.T) *trial {
	t.Parallel() // each waits for its healthy minute, which is much longer than it takes to fail
	b := newBench(t)
	b.def.Command, b.def.Rollback = []string{"/bin/program"}, true
	b.def.Healthy, b.def.BackoffMax = time.Second, 10*time.Millisecond
	return &trial{bench: b}
}

func (r *trial) program() string { return filepath.Join(r.root, "bin/program") }

// lay puts an executable at the path as the host does, in one rename.
func (r *trial) lay(content string, mode os.FileMode) {
	r.t.Helper()
	temp := r.program() + ".new"
	err := os.WriteFile(temp, []byte(content), 0o600)
	if err = errors.Join(err, os.Chmod(temp, mode)); err == nil {
		err = os.Rename(temp, r.program())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *trial) holds(want string) {
	r.t.Helper()
	got, err := os.ReadFile(r.program())
	if err != nil || string(got) != want {
		r.t.Errorf("at the path is %q, %v; want %q", got, err, want)
	}
	if left, _ := filepath.Glob(filepath.Join(r.root, "bin/.*")); len(left) > 0 {
		r.t.Errorf("beside it is %q", left)
	}
}

func (r *trial) rollback() Rollback {
	r.t.Helper()
	v, err := ReadRollback(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// knows waits for what the shim knows.
func (r *trial) knows(what string, ok func(Rollback) bool) {
	r.t.Helper()
	r.await(r.dir, what, func() bool {
		v, err := ReadRollback(r.dir)
		return err == nil && ok(v)
	})
}

// proven waits until that content is known to work, and its copy is the only one.
func (r *trial) proven(content string) {
	r.t.Helper()
	digest := Digest([]byte(content))
	r.knows("the copy", func(v Rollback) bool { return v.Good != nil && v.Good.Digest == digest })
	r.await(r.dir, "its copy to be the only one", func() bool {
		copies, _ := filepath.Glob(filepath.Join(r.dir, goodPrefix+"*"))
		return len(copies) == 1 && copies[0] == goodPath(r.dir, digest)
	})
	kept, err := os.ReadFile(goodPath(r.dir, digest))
	if err != nil || string(kept) != content {
		r.t.Fatalf("the copy is %q, %v; want %q", kept, err, content)
	}
}

// end ends the process, which is a failure.
func (r *trial) end() {
	r.t.Helper()
	s := r.phase(Running)
	if err := syscall.Kill(s.Child.PID, syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
}

func (r *trial) ran() string {
	out, _ := os.ReadFile(filepath.Join(r.root, "ran"))
	return strings.Join(strings.Fields(string(out)), " ")
}

// ranTo waits until that is what was started, in order.
func (r *trial) ranTo(want string) {
	r.t.Helper()
	r.await(r.root, "it to run "+want, func() bool { return len(r.ran()) >= len(want) })
	if got := r.ran(); got != want {
		r.t.Errorf("it ran %q, want %q", got, want)
	}
}

// back waits until the one before serves in place of what failed.
func (r *trial) back(failed string) {
	r.t.Helper()
	r.knows("it to be put back", func(v Rollback) bool { return v.Back() && v.Returning == "" })
	r.until("it to serve", func(s State) bool { return s.Phase == Running && s.Failures == 0 })
	v := r.rollback()
	if v.Failed[0].Digest != Digest([]byte(failed)) || v.Unable != "" {
		r.t.Errorf("what is known is %+v", v)
	}
}
