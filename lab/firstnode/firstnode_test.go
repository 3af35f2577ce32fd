package firstnode

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func newNode(t *testing.T) (*Node, *bytes.Buffer) {
	t.Helper()
	out := new(bytes.Buffer)
	n := &Node{Dir: filepath.Join(openDir(t), "node"), DownCommand: "down", Std: cli.Stdio{Out: out, Err: out}, Clock: clock.System}
	if err := n.claim(); err != nil {
		t.Fatal(err)
	}
	return n, out
}

// openDir is t.TempDir for a user of any kind: root's must let others pass.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nox-lab-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// program starts this test's binary from the node's folder; it runs until it
// is told to end, which it ignores when stubborn.
func program(t *testing.T, n *Node, name string, args ...string) process {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := n.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, self, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "NOX_LAB_PROGRAM=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatalf("the program did not start: %v", err)
	}
	p, ok := look(cmd.Process.Pid)
	if !ok {
		t.Fatal("the program ended")
	}
	return p
}

func TestDownEndsWhatRunsFromTheFolderAndRemovesIt(t *testing.T) {
	n, _ := newNode(t)
	shim := program(t, n, "root/var/lib/nox-mesh/launcher/mesh-host", "shim", "x")
	host := program(t, n, "root/usr/local/bin/mesh-host", "run")
	// A binary that was replaced still runs.
	if err := os.Remove(n.path("root/usr/local/bin/mesh-host")); err != nil {
		t.Fatal(err)
	}
	other, _ := newNode(t)
	stranger := program(t, other, "mesh-host", "run")
	if err := n.writeMark(mark{Host: host}); err != nil {
		t.Fatal(err)
	}
	if err := n.Down(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []process{host, shim} {
		if p.lives() {
			t.Errorf("process %d lives", p.PID)
		}
	}
	if !stranger.lives() {
		t.Error("it ended a process of another folder")
	}
	if _, err := os.Lstat(n.Dir); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
	if err := n.Down(); err != nil {
		t.Errorf("down again: %v", err)
	}
}

func TestEndKillsWhatDoesNotListen(t *testing.T) {
	n, _ := newNode(t)
	p := program(t, n, "stubborn", "stubborn")
	if err := p.end(50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if p.lives() {
		t.Error("it lives")
	}
}

func TestEndSparesALaterProcessOfTheSameNumber(t *testing.T) {
	n, _ := newNode(t)
	p := program(t, n, "later")
	earlier := process{PID: p.PID, Start: p.Start - 1}
	if earlier.lives() {
		t.Error("the earlier one is said to live")
	}
	if err := earlier.end(time.Second); err != nil {
		t.Fatal(err)
	}
	if !p.lives() {
		t.Error("the later one was ended")
	}
}

func TestFolderOfSomebodyElseIsRefused(t *testing.T) {
	n, _ := newNode(t)
	if err := os.Rename(n.path(markName), n.path("thesis.txt")); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"up": n.Up(t.Context()), "down": n.Down()} {
		if fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := os.Lstat(n.path("thesis.txt")); err != nil {
		t.Error(err)
	}
}

func TestRootIsToldOfAPlaceThatIsClosedToTheControlPlane(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's control plane becomes another user")
	}
	n, _ := newNode(t)
	if err := os.Chmod(filepath.Dir(n.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := n.Up(t.Context()); err == nil || fault.RemedyOf(err) == "" {
		t.Errorf("up: %v", err)
	}
}

func TestUnknownCommandIsWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"bogus"}, {"up", "extra"}, {"up", "--bogus"}} {
		err := Command(t.Context(), args, cli.Stdio{In: &bytes.Buffer{}, Out: io.Discard, Err: io.Discard})
		if fault.KindOf(err) != fault.Usage {
			t.Errorf("%v: %v", args, err)
		}
	}
}
