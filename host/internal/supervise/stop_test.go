package supervise

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestR08StopDuringBackoffStartsNothing(t *testing.T) {
	b := newBench(t, "exit", "1")
	b.def.Backoff, b.def.BackoffMax = time.Hour, time.Hour
	shim := b.up()
	b.phase(Backoff)
	b.down(shim)
	if n := len(b.starts()); n != 1 {
		t.Errorf("it was started %d times, want once", n)
	}
}

func TestR04ProcessThatIgnoresTheStopSignalIsKilled(t *testing.T) {
	b := newBench(t, "stubborn")
	b.def.StopTimeout = 10 * time.Millisecond
	shim := b.up()
	child := b.raised("up")
	leader := strconv.Itoa(b.phase(Running).Child.PID)
	b.down(shim)
	b.gone("the process", leader)
	b.gone("its child", child)
	if !strings.Contains(b.output(), "did not end in 10ms and is killed") {
		t.Errorf("nothing was said:\n%s", b.output())
	}
}

// What loses its parent is the shim's to bury, while the process itself lives on.
func TestR04NoZombieIsLeft(t *testing.T) {
	b := newBench(t, "daemon", "stays")
	shim := b.up()
	daemon := b.raised("daemon-up")
	b.phase(Running)
	pid, err := strconv.Atoi(daemon)
	if err != nil {
		t.Fatal(err)
	}
	if kids, err := childrenOf(shim.Process.Pid); err != nil || !slices.ContainsFunc(kids, func(s stat) bool { return s.pid == pid }) {
		t.Fatalf("the daemon is none of the shim's children: %+v, %v", kids, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	tick, end := time.NewTicker(5*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for there := true; there; {
		select {
		case <-tick.C:
			_, err := os.Lstat(filepath.Join("/proc", daemon))
			there = err == nil
		case <-end:
			t.Fatal("the daemon is a zombie")
		}
	}
	b.phase(Running)
	b.down(shim)
}

func TestR07StopEndsWhatWasForkedOff(t *testing.T) {
	b := newBench(t, "daemon", "stays")
	shim := b.up()
	daemon := b.raised("daemon-up")
	b.phase(Running)
	b.down(shim)
	b.gone("the daemon", daemon)
	b.raised("daemon-told") // it could end by itself; it was not killed at once
}

// R-07, and never two.
func TestR07ExitEndsWhatWasForkedOffBeforeTheNextStart(t *testing.T) {
	b := newBench(t, "daemon", "leaves")
	b.def.FailureLimit = 1
	shim := b.up()
	s := b.phase(Halted)
	if s.LastExit != "exited with 1" {
		t.Errorf("%+v, want exited with 1", s)
	}
	// The daemon may have been killed before it could say who it is.
	if pid, err := os.ReadFile(filepath.Join(b.root, "flags/daemon-up")); err == nil {
		b.gone("the daemon", string(pid))
	}
	if kids, err := childrenOf(shim.Process.Pid); err != nil || len(kids) > 0 {
		t.Errorf("a halted shim has the children %v (%v)", kids, err)
	}
	b.down(shim)
}

func childrenOf(pid int) (kids []stat, err error) {
	all, err := processes()
	for _, p := range all {
		if p.parent == pid {
			kids = append(kids, p)
		}
	}
	return kids, err
}
