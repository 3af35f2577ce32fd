package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestR02SecondShimLeavesTheFirstAlone(t *testing.T) {
	b := newBench(t, "live")
	shim := b.up()
	before := b.phase(Running)
	out, err := exec.Command(os.Args[0], "shim", "--root", b.root, "test").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `process "test" has a shim already`) {
		t.Errorf("the second says %q, %v", out, err)
	}
	if after := b.state(); after.Child == nil || *after.Child != *before.Child {
		t.Errorf("the state was %+v and is %+v", before, after)
	}
	b.down(shim)
}

func TestShimIsFoundByItsLock(t *testing.T) {
	b := newBench(t, "live")
	if h, err := Shim(b.dir); h != nil || err != nil {
		t.Fatalf("before there was one: %v, %v", h, err)
	}
	cmd := b.up()
	b.phase(Running)
	h, err := Shim(b.dir)
	if err != nil || h == nil || h.PID != cmd.Process.Pid {
		t.Fatalf("found %+v, %v; want process %d", h, err, cmd.Process.Pid)
	}
	defer h.Close()
	// Looking did not take the lock, nor lose it for the one who has it.
	if h, err := Shim(b.dir); err != nil || h == nil {
		t.Fatalf("found %+v, %v the second time", h, err)
	}
	b.down(cmd)
	b.wait(h)
	if h, err := Shim(b.dir); h != nil || err != nil {
		t.Errorf("after its end: %v, %v", h, err)
	}
}

func TestR01StrangerWithThePIDIsUntouched(t *testing.T) {
	stranger := exec.Command("/proc/self/exe", "polite", "stranger")
	b := newBench(t, "live")
	stranger.Args[0], stranger.Env = "child", []string{"NOX_ROOT=" + b.root}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stranger.Process.Kill(); stranger.Wait() }()
	b.raised("stranger-up")
	is, err := procOf(stranger.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	otherStart, otherBoot := is, is
	otherStart.Start--
	otherBoot.Boot = "another"
	for _, p := range []Proc{otherStart, otherBoot} {
		if err := (&State{Shim: p, Child: &p, Phase: Running}).save(b.dir); err != nil {
			t.Fatal(err)
		}
		shim := b.up()
		b.phase(Running)
		b.down(shim)
		if h := b.hold(strconv.Itoa(is.PID)); h == nil {
			t.Fatalf("the stranger died of %+v", p)
		} else {
			h.Close()
		}
	}
	if _, err := os.Stat(filepath.Join(b.root, "flags/stranger-told")); err == nil {
		t.Error("the stranger was sent a signal")
	}
}

// R-02, one level down: the shim itself is killed.
func TestR02ShimThatWasKilledIsFollowedByOneProcess(t *testing.T) {
	b := newBench(t, "worker")
	shim := b.up()
	old := b.phase(Running)
	worker := b.hold(b.raised("worker-up"))
	defer worker.Close()
	if err := os.Remove(filepath.Join(b.root, "flags/worker-up")); err != nil {
		t.Fatal(err)
	}
	b.kill(shim)
	if h, _ := Find(*old.Child); h == nil {
		t.Fatal("the process died with its shim: this test tests nothing")
	} else {
		defer h.Close()
	}
	shim = b.up()
	b.raised("worker-up")
	now := b.phase(Running)
	b.gone("the old process", strconv.Itoa(old.Child.PID))
	b.wait(worker)
	if now.Child.PID == old.Child.PID || len(b.starts()) != 2 {
		t.Errorf("%d starts, child %+v", len(b.starts()), now.Child)
	}
	b.down(shim)
}

// What the state file says of a process is true of this moment: until its successor
// has started one, nothing runs.
func TestShimThatFollowsAKilledOneSaysStartingFirst(t *testing.T) {
	b := newBench(t, "worker")
	killed := b.up()
	b.phase(Running)
	b.kill(killed)
	definition, err := os.ReadFile(filepath.Join(b.dir, DefinitionFile))
	if err != nil {
		t.Fatal(err)
	}
	out, err := openOutput(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer out.close()
	if err := (&shim{root: b.root, dir: b.dir, out: out}).load(definition); err != nil {
		t.Fatal(err)
	}
	if s := b.state(); s.Phase != Starting || s.Child != nil {
		t.Errorf("nothing was started yet, and the state is %+v", s)
	}
}

func TestR03HaltedStaysHaltedWhenTheShimIsKilled(t *testing.T) {
	b := newBench(t, "exit", "1")
	first := b.up()
	b.phase(Halted)
	b.kill(first)
	shim := b.up()
	if s := b.phase(Halted); s.Failures != 3 || len(b.starts()) != 3 {
		t.Errorf("%+v after %d starts", s, len(b.starts()))
	}
	b.down(shim)
	// Somebody starts it again: it begins anew.
	shim = b.up()
	b.phase(Halted)
	if n := len(b.starts()); n != 6 {
		t.Errorf("%d starts, want 6", n)
	}
	b.down(shim)
}

// The shim was killed after it had started the child and before it wrote that down.
func TestR02ChildThatNoStateNamesIsEnded(t *testing.T) {
	b := newBench(t, "live")
	first := b.up()
	s := b.phase(Running)
	child := b.hold(strconv.Itoa(s.Child.PID))
	b.kill(first)
	s.Child, s.Phase = nil, Starting
	s.Sequence++
	if err := s.save(b.dir); err != nil {
		t.Fatal(err)
	}
	shim := b.up()
	b.wait(child)
	if now := b.phase(Running); now.Child.PID == child.PID {
		t.Errorf("%+v", now)
	}
	b.down(shim)
}
