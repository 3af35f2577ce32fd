package supervise

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A disk that cannot be written: a folder is in the state's way.
func TestStateThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	b := newBench(t, "live")
	if err := os.Mkdir(statePath(b.dir), 0o700); err != nil {
		t.Fatal(err)
	}
	b.def.Backoff = time.Hour
	shim := b.up()
	b.await(b.root, "the process", func() bool { return len(b.starts()) == 1 })
	if err := os.Remove(statePath(b.dir)); err != nil {
		t.Fatal(err)
	}
	if s := b.phase(Running); s.Child == nil || strconv.Itoa(s.Child.PID) != b.starts()[0] {
		t.Errorf("%+v after the starts %v", s, b.starts())
	}
	b.down(shim)
	if !strings.Contains(b.output(), "cannot write the state") {
		t.Errorf("nothing was said:\n%s", b.output())
	}
}

func TestFullDiskCostsTheProcessNothing(t *testing.T) {
	b := newBench(t, "live")
	if err := syscall.Mount("nox-test", b.dir, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		for _, cmd := range b.shims {
			if cmd.ProcessState == nil {
				b.kill(cmd)
			}
		}
		if err := EndLeftover(b.dir); err != nil {
			t.Error(err)
		}
		if err := syscall.Unmount(b.dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	fill := func() {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.dir, "fill"), make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
	}
	shim := b.up()
	started := func(n int) {
		t.Helper()
		b.await(b.root, "a start", func() bool { return len(b.starts()) == n })
	}
	started(1)
	first := b.phase(Running)
	fill()
	if err := syscall.Kill(first.Child.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.until("another process", func(s State) bool { return s.Phase == Running && *s.Child != *first.Child })
	started(2)
	// A reboot with the disk full.
	b.kill(shim)
	shim = exec.Command(os.Args[0], "shim", "--root", b.root, "test")
	shim.Env = []string{}
	if err := shim.Start(); err != nil {
		t.Fatal(err)
	}
	b.shims = append(b.shims, shim)
	b.phase(Running)
	started(3)
	b.down(shim)
}

func TestDamagedStateIsWrittenAgain(t *testing.T) {
	b := newBench(t, "live")
	shim := b.up()
	before := b.phase(Running)
	for name, damage := range map[string]func() error{
		"deleted": func() error { return os.Remove(statePath(b.dir)) },
		"emptied": func() error { return os.Truncate(statePath(b.dir), 0) },
		"garbled": func() error { return os.WriteFile(statePath(b.dir), []byte("{{"), 0o600) },
		"another's": func() error {
			return (&State{Sequence: 1 << 40, Shim: Proc{PID: 1}, Phase: Halted}).save(b.dir)
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if s := b.phase(Running); *s.Child != *before.Child {
			t.Errorf("%s: the process is %+v and was %+v", name, s.Child, before.Child)
		}
	}
	b.down(shim)
}

func TestDeletedLockIsTakenAgain(t *testing.T) {
	for name, replace := range map[string]func(lock string) error{
		"deleted":  func(string) error { return nil },
		"replaced": func(lock string) error { return os.WriteFile(lock, []byte("x"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "live")
			b.def.Guard = time.Hour
			shim := b.up()
			before := b.phase(Running)
			lock := filepath.Join(b.dir, LockFile)
			if err := errors.Join(os.Remove(lock), replace(lock)); err != nil {
				t.Fatal(err)
			}
			// Until then nobody takes it for dead, nor can be a second.
			h, err := Shim(b.dir)
			if err != nil || h == nil || h.PID != shim.Process.Pid || !h.Runs(before.Definition) {
				t.Fatalf("found %+v, %v; want process %d", h, err, shim.Process.Pid)
			}
			h.Close()
			out, err := exec.Command(os.Args[0], "shim", "--root", b.root, "test").CombinedOutput()
			if err == nil || !strings.Contains(string(out), "has a shim already") {
				t.Fatalf("a second shim says %q, %v", out, err)
			}
			b.down(shim)

			b.def.Guard = 20 * time.Millisecond
			shim = b.up()
			before = b.phase(Running)
			if err := errors.Join(os.Remove(lock), replace(lock)); err != nil {
				t.Fatal(err)
			}
			b.await(b.dir, "the lock", func() bool {
				h, err := holds(lock)
				if h != nil {
					h.Close()
				}
				return err == nil && h != nil && h.PID == shim.Process.Pid
			})
			if s := b.state(); *s.Child != *before.Child {
				t.Errorf("the process is %+v and was %+v", s.Child, before.Child)
			}
			b.down(shim)
		})
	}
}

func TestShimWhoseFolderIsGoneEndsWithItsProcess(t *testing.T) {
	for name, take := range map[string]func(b *bench) error{
		"deleted": func(b *bench) error { return os.RemoveAll(b.dir) },
		"moved":   func(b *bench) error { return os.Rename(b.dir, b.dir+".aside") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "worker")
			b.def.Guard = time.Second
			shim := b.up()
			child := b.phase(Running).Child
			worker := b.raised("worker-up")
			if err := take(b); err != nil {
				t.Fatal(err)
			}
			h, err := Shim(b.dir)
			if err != nil || h == nil || h.PID != shim.Process.Pid {
				t.Fatalf("found %+v, %v; want process %d", h, err, shim.Process.Pid)
			}
			defer h.Close()
			if err := shim.Wait(); err == nil {
				t.Error("the shim ended as if all were well")
			}
			b.gone("the process", strconv.Itoa(child.PID))
			b.gone("its worker", worker)
			if _, err := os.Lstat(b.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder is back: %v", err)
			}
		})
	}
}

func TestRunningDefinitionIsKnownWithoutAFile(t *testing.T) {
	b := newBench(t, "live")
	shim := b.up()
	digest := b.phase(Running).Definition
	for _, name := range []string{DefinitionFile, StateFile} {
		if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	h, err := Shim(b.dir)
	if err != nil || h == nil {
		t.Fatalf("found %v, %v", h, err)
	}
	defer h.Close()
	if !h.Runs(digest) || h.Runs(Digest([]byte("another"))) || h.Runs("") {
		t.Errorf("it runs %s, and the lock does not say so", digest)
	}
	_ = shim.Process.Signal(syscall.SIGTERM)
	b.wait(h)
}
