package supervise

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestR03BadExecutableIsRolledBackAndTheOneBeforeServes(t *testing.T) {
	r := newTrial(t)
	r.lay(good, 0o755)
	shim := r.up()
	r.proven(good)
	r.lay(bad, 0o751)
	attributes := syscall.Setxattr(r.program(), "user.nox", []byte("kept"), 0)
	// cap_net_bind_service+ep (capabilities(7), linux/capability.h)
	capable := []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if os.Geteuid() == 0 {
		if err := os.Chown(r.program(), 4711, 4712); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Setxattr(r.program(), "security.capability", capable, 0); err != nil {
			capable = nil // not on this file system
		}
	}
	r.end()
	r.back(bad)
	r.holds(good)
	fi, err := os.Lstat(r.program())
	if err != nil {
		t.Fatal(err)
	}
	if st := fi.Sys().(*syscall.Stat_t); fi.Mode().Perm() != 0o751 || os.Geteuid() == 0 && (st.Uid != 4711 || st.Gid != 4712) {
		t.Errorf("it is %v of %d:%d, and not as what was there", fi.Mode(), st.Uid, st.Gid)
	}
	value := make([]byte, 10)
	if n, err := syscall.Getxattr(r.program(), "user.nox", value); attributes == nil && (err != nil || string(value[:n]) != "kept") {
		t.Errorf("its attribute is %q, %v", value[:max(n, 0)], err)
	}
	value = make([]byte, 100)
	if n, err := syscall.Getxattr(r.program(), "security.capability", value); os.Geteuid() == 0 && capable != nil && (err != nil || !bytes.Equal(value[:n], capable)) {
		t.Errorf("its capabilities are %x, %v", value[:max(n, 0)], err)
	}
	if f := r.rollback().Failed[0]; f.Failures != 3 || f.LastExit != "exited with 7" || f.At.IsZero() {
		t.Errorf("what failed is written down as %+v", f)
	}
	r.ranTo("good bad bad bad good")
	// The healthy minute of the one that was put back forgets nothing: the bad one
	// would come again.
	r.end()
	r.until("another life", func(s State) bool { return s.Phase == Running && s.Failures == 0 })
	if v := r.rollback(); !v.Back() || v.Find(Digest([]byte(bad))) == nil {
		t.Errorf("after it lived on, known is %+v", v)
	}
	// Nor does a new shim.
	r.down(shim)
	shim = r.up()
	r.phase(Running)
	if v := r.rollback(); !v.Back() {
		t.Errorf("a new shim knows %+v", v)
	}
	// Another that works does.
	r.lay(other, 0o755)
	r.end()
	r.proven(other)
	if v := r.rollback(); len(v.Failed) > 0 || v.Put != nil {
		t.Errorf("after another has worked, known is %+v", v)
	}
	r.down(shim)
	if line := "exited with 7; after 3 failures in a row the executable " + Digest([]byte(bad)) + " is replaced by the one before it, " + Digest([]byte(good)); !strings.Contains(r.output(), line) {
		t.Errorf("the output does not say %q:\n%s", line, r.output())
	}
}

func TestR03WhenTheOneBeforeFailsAsWellItIsHalted(t *testing.T) {
	r := newTrial(t)
	r.lay(fails, 0o755)
	shim := r.up()
	r.proven(fails)
	r.lay(bad, 0o755)
	if err := os.WriteFile(filepath.Join(r.root, "fail"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.end()
	if s := r.phase(Halted); s.Failures != 3 || s.LastExit != "exited with 9" {
		t.Errorf("%+v", s)
	}
	if want := "fails bad bad bad fails fails fails"; r.ran() != want {
		t.Errorf("it ran %q, want %q", r.ran(), want)
	}
	r.holds(fails)
	if v := r.rollback(); !v.Back() {
		t.Errorf("known is %+v", v)
	}
	r.down(shim)
	if line := "exited with 9; halted after 3 failures in a row; the executable before it, put back, failed as well"; !strings.Contains(r.output(), line) {
		t.Errorf("the output does not say %q:\n%s", line, r.output())
	}
}

// it cannot even be executed.
func TestR03ExecutableOfNoUseIsRolledBack(t *testing.T) {
	for name, content := range map[string]string{
		"cut": "\x7fELF\x02\x01\x01", "empty": "", "no interpreter": "#!/bin/there-is-none\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newTrial(t)
			r.lay(good, 0o755)
			shim := r.up()
			r.proven(good)
			r.lay(content, 0o755)
			r.end()
			r.back(content)
			r.holds(good)
			if f := r.rollback().Failed[0]; !strings.HasPrefix(f.LastExit, `cannot start "/bin/program": `) {
				t.Errorf("%+v", f)
			}
			r.down(shim)
		})
	}
}

func TestR03ExecutableThatIsGoneComesBack(t *testing.T) {
	r := newTrial(t)
	r.lay(good, 0o750)
	shim := r.up()
	r.proven(good)
	if err := os.Remove(r.program()); err != nil {
		t.Fatal(err)
	}
	r.end()
	r.knows("it to be put back", func(v Rollback) bool { return v.Put != nil })
	r.phase(Running)
	r.holds(good)
	if fi, err := os.Stat(r.program()); err != nil || fi.Mode().Perm() != 0o750 {
		t.Errorf("%v, %v", fi, err)
	}
	if v := r.rollback(); len(v.Failed) > 0 {
		t.Errorf("nothing failed, and known is %+v", v)
	}
	r.down(shim)
}

// Halted with the reason, and never a loop.
func TestR11ExecutableThatCannotBePutBack(t *testing.T) {
	copyOf := func(r *trial) string { return goodPath(r.dir, Digest([]byte(good))) }
	for name, c := range map[string]struct {
		spoil func(r *trial) error
		why   string
		stays string
	}{
		"gone":    {func(r *trial) error { return os.Remove(copyOf(r)) }, "its copy is gone", bad},
		"damaged": {func(r *trial) error { return os.WriteFile(copyOf(r), []byte(good+"#"), 0o600) }, "its copy is damaged", bad},
		"unwritable": {func(r *trial) error {
			return os.MkdirAll(filepath.Join(r.root, "bin", backName("program"), "x"), 0o755)
		}, "directory not empty", bad},
		"a symlink in its place": {func(r *trial) error {
			return errors.Join(os.Rename(r.program(), r.program()+".else"), os.Symlink("program.else", r.program()))
		}, "what is in its place is no regular file", bad},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTrial(t)
			r.lay(good, 0o755)
			shim := r.up()
			r.proven(good)
			r.lay(bad, 0o755)
			if err := c.spoil(r); err != nil {
				t.Fatal(err)
			}
			r.end()
			s := r.phase(Halted)
			if want := "good bad bad bad"; r.ran() != want || s.Failures != 3 {
				t.Errorf("it ran %q, want %q; %+v", r.ran(), want, s)
			}
			v := r.rollback()
			if !strings.Contains(v.Unable, c.why) || len(v.Failed) > 0 || v.Put != nil || v.Returning != "" {
				t.Errorf("known is %+v, want that %q", v, c.why)
			}
			if got, err := os.ReadFile(r.program()); err != nil || string(got) != c.stays {
				t.Errorf("at the path is %q, %v", got, err)
			}
			r.await(r.dir, "word of it", func() bool {
				return strings.Contains(r.output(), "halted after 3 failures in a row; the executable before it cannot be put back: ")
			})
			// Another shim finds it so.
			r.kill(shim)
			shim = r.up()
			r.phase(Halted)
			if want := "good bad bad bad"; r.ran() != want {
				t.Errorf("it ran %q, want %q", r.ran(), want)
			}
			r.down(shim)
		})
	}
}

func TestR03ShimThatIsKilledAtAnyStepOfARollback(t *testing.T) {
	for _, step := range []string{"known", "copied", "renamed", "back"} {
		t.Run(step, func(t *testing.T) {
			r := newTrial(t)
			r.lay(good, 0o755)
			shim := r.up()
			r.proven(good)
			r.lay(bad, 0o755)
			if err := os.WriteFile(filepath.Join(r.root, "die"), []byte(step), 0o600); err != nil {
				t.Fatal(err)
			}
			r.end()
			if err := shim.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("the shim ended with %v", err)
			}
			if v := r.rollback(); v.Find(Digest([]byte(bad))) == nil {
				t.Errorf("killed when nothing was known of it: %+v", v)
			}
			shim = r.up()
			r.back(bad)
			r.holds(good)
			r.ranTo("good bad bad bad good")
			r.down(shim)
		})
	}
}

// Somebody declared another while the shim was dead in the middle of it.
func TestR03WhatCameInTheMiddleOfARollbackStays(t *testing.T) {
	r := newTrial(t)
	r.lay(good, 0o755)
	shim := r.up()
	r.proven(good)
	r.lay(bad, 0o755)
	if err := os.WriteFile(filepath.Join(r.root, "die"), []byte("copied"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.end()
	_ = shim.Wait()
	r.lay(other, 0o755)
	shim = r.up()
	r.proven(other)
	r.holds(other)
	r.down(shim)
}

func TestR03FailuresAreCountedForEachExecutable(t *testing.T) {
	r := newTrial(t)
	r.lay(good, 0o755)
	shim := r.up()
	r.proven(good)
	r.def.BackoffMax = time.Hour
	r.down(shim)
	r.def.Backoff = 200 * time.Millisecond
	r.lay(bad, 0o755)
	shim = r.up()
	r.until("a failure", func(s State) bool { return s.Phase == Backoff && s.Failures == 2 })
	r.lay(fails, 0o755)
	if err := os.WriteFile(filepath.Join(r.root, "fail"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s := r.until("a failure of the next", func(s State) bool { return s.Phase == Backoff && s.LastExit == "exited with 9" }); s.Failures != 1 {
		t.Errorf("%+v, want one failure", s)
	}
	r.down(shim)
}

// No executable could be started without its directory.
func TestMissingDirectoryIsNoFaultOfTheExecutable(t *testing.T) {
	r := newTrial(t)
	r.lay(good, 0o755)
	shim := r.up()
	r.proven(good)
	r.down(shim)
	r.lay(other, 0o755)
	r.def.Directory = "/srv"
	shim = r.up()
	r.phase(Halted)
	r.holds(other)
	if v := r.rollback(); len(v.Failed) > 0 {
		t.Errorf("known is %+v", v)
	}
	r.down(shim)
}
