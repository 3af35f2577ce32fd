package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A bench is a root with one process in it.
type bench struct {
	t         *testing.T
	root, dir string
	def       Definition
	shims     []*exec.Cmd
}

// newBench makes a root in which /bin/child is the supervised program. The
// times are so short, or so long, that a test waits for events alone.
func newBench(t *testing.T, command ...string) *bench {
	b := &bench{t: t, root: t.TempDir()}
	b.dir = Folder(b.root, "test")
	for _, d := range []string{b.dir, filepath.Join(b.root, "bin"), filepath.Join(b.root, "flags")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(b.root, "bin/child")); err != nil {
		t.Fatal(err)
	}
	b.def = Definition{
		Command:      append([]string{"/bin/child"}, command...),
		UID:          uint32(os.Geteuid()),
		GID:          uint32(os.Getegid()),
		Restart:      "always",
		SuccessCodes: []int{0},
		StopSignal:   int(syscall.SIGTERM),
		StopTimeout:  time.Hour,
		FailureLimit: 3,
		Backoff:      5 * time.Millisecond,
		Settle:       20 * time.Millisecond,
		Healthy:      time.Hour,
		Guard:        20 * time.Millisecond,
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
	})
	return b
}

func (b *bench) write() {
	b.t.Helper()
	content, err := b.def.Bytes()
	if err == nil {
		err = os.WriteFile(filepath.Join(b.dir, DefinitionFile), content, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// up writes the definition and starts a shim.
func (b *bench) up() *exec.Cmd {
	b.t.Helper()
	b.write()
	cmd := exec.Command(os.Args[0], "shim", "--root", b.root, "test")
	cmd.Env = []string{}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.shims = append(b.shims, cmd)
	return cmd
}

// down tells a shim to end and waits for it.
func (b *bench) down(cmd *exec.Cmd) {
	b.t.Helper()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		b.t.Fatalf("the shim ended with %v", err)
	}
	if s := b.state(); s.Phase != Stopped || s.Child != nil {
		b.t.Fatalf("the state of a shim that ended is %+v", s)
	}
}

func (b *bench) kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func (b *bench) state() State {
	b.t.Helper()
	s, err := ReadState(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// until waits for a state the running shim wrote.
func (b *bench) until(what string, ok func(State) bool) State {
	b.t.Helper()
	var s State
	b.await(b.dir, what, func() bool {
		var err error
		s, err = ReadState(b.dir)
		return err == nil && s.Shim.PID == b.shims[len(b.shims)-1].Process.Pid && ok(s)
	})
	return s
}

func (b *bench) phase(p Phase) State {
	b.t.Helper()
	return b.until(string(p), func(s State) bool { return s.Phase == p })
}

// raised waits for a flag of the child's and returns what is in it.
func (b *bench) raised(name string) string {
	b.t.Helper()
	var content []byte
	b.await(filepath.Join(b.root, "flags"), "the flag "+name, func() bool {
		var err error
		content, err = os.ReadFile(filepath.Join(b.root, "flags", name))
		return err == nil
	})
	return string(content)
}

// await waits until ok, asking after each file that was written in dir.
func (b *bench) await(dir, what string, ok func() bool) {
	b.t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		b.t.Fatal(err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer events.Close()
	if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_MOVED_TO|syscall.IN_CLOSE_WRITE|syscall.IN_MODIFY|syscall.IN_DELETE); err != nil {
		b.t.Fatal(err)
	}
	_ = events.SetReadDeadline(time.Now().Add(30 * time.Second))
	buf := make([]byte, 4096)
	for !ok() {
		if _, err := events.Read(buf); err != nil {
			s, _ := os.ReadFile(filepath.Join(b.dir, StateFile))
			out, _ := os.ReadFile(filepath.Join(b.dir, OutputFile))
			b.t.Fatalf("waited in vain for %s: %v\nstate %s\noutput %.2000s", what, err, s, out)
		}
	}
}

// starts are the PIDs the process had, in order.
func (b *bench) starts() []string {
	content, err := os.ReadFile(filepath.Join(b.root, "starts"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	return strings.Fields(string(content))
}

func (b *bench) output() string {
	out, _ := os.ReadFile(filepath.Join(b.dir, OutputFile))
	return string(out)
}

// hold holds on to a process whose PID is in text, so that its end can be
// waited for; nil when it is gone.
func (b *bench) hold(text string) *Handle {
	b.t.Helper()
	pid, err := strconv.Atoi(text)
	if err != nil {
		b.t.Fatal(err)
	}
	p, err := procOf(pid)
	if err != nil {
		return nil
	}
	h, err := Find(p)
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

func (b *bench) gone(what, pid string) {
	b.t.Helper()
	if h := b.hold(pid); h != nil {
		b.t.Errorf("%s (process %s) is still there", what, pid)
		_ = h.Signal(syscall.SIGKILL)
		h.Close()
	}
}

func (b *bench) wait(h *Handle) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := h.Wait(ctx); err != nil {
		b.t.Fatal(fmt.Errorf("process %d does not end: %w", h.PID, err))
	}
}
