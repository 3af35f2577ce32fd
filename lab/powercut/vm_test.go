//go:build machine

package powercut

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A vm is a machine that runs until its power is cut.
type vm struct {
	t     *testing.T
	qemu  *exec.Cmd
	over  chan struct{} // closed when qemu has ended and all it said is read
	said  chan event
	once  sync.Once
	mu    sync.Mutex
	lines []string
}

// An event is a line that the guest wrote.
type event struct {
	what string // applying, done, idle
	n    uint64
	at   time.Duration // of the machine's processor
}

// patience is for what takes seconds, on a computer that has much else to do.
const patience = 5 * time.Minute

// boot starts a machine with a disk.
func boot(t *testing.T, kernel, initrd, disk string, options ...string) *vm {
	t.Helper()
	v := &vm{t: t, over: make(chan struct{}), said: make(chan event, 1000)}
	v.qemu = exec.Command("qemu-system-x86_64", "-accel", "tcg", "-cpu", "qemu64", "-smp", "1", "-m", "768",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "file:/dev/stdout",
		"-kernel", kernel, "-initrd", initrd, "-append", "console=ttyS0 quiet panic=-1 "+strings.Join(options, " "),
		// Only the guest's memory is lost, whatever the mode: it is the quickest.
		"-drive", "file="+disk+",format=raw,if=none,id=d,cache=unsafe", "-device", "nvme,drive=d,serial=1")
	v.qemu.WaitDelay = time.Second
	var errors bytes.Buffer
	v.qemu.Stderr = &errors
	out, err := v.qemu.StdoutPipe()
	if err == nil {
		err = v.qemu.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(v.over)
		defer close(v.said)
		for s := bufio.NewScanner(out); s.Scan(); {
			v.hear(s.Text())
		}
		_ = v.qemu.Wait() // it was killed, or the guest says why not
		if errors.Len() > 0 {
			v.hear("qemu: " + errors.String())
		}
	}()
	t.Cleanup(v.cut)
	return v
}

var saying = regexp.MustCompile(`nox: (applying|done|idle) ([0-9]+)\r?$`)

func (v *vm) hear(line string) {
	v.mu.Lock()
	v.lines = append(v.lines, line)
	v.mu.Unlock()
	if m := saying.FindStringSubmatch(line); m != nil {
		n, _ := strconv.ParseUint(m[2], 10, 64)
		v.said <- event{m[1], n, v.worked()}
	}
}

// console is all that was on it.
func (v *vm) console() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(v.lines, "\n")
}

// await returns the next event, which must be this one.
func (v *vm) await(what string, n uint64) event {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), patience)
	defer cancel()
	select {
	case e, ok := <-v.said:
		if !ok || e.what != what || e.n != n {
			v.t.Fatalf("the machine does not say %q but %+v; its console:\n%s", fmt.Sprint(what, " ", n), e, v.console())
		}
		return e
	case <-ctx.Done():
		v.t.Fatalf("the machine does not say %q; its console:\n%s", fmt.Sprint(what, " ", n), v.console())
		panic("not reached")
	}
}

// worked is how long the machine's processor has worked, whatever else this
// computer has to do: so that a moment of an apply is one on a busy computer
// as well. It is 0 when there is no machine any more.
func (v *vm) worked() time.Duration {
	var at unix.Timespec
	clock := int32(^v.qemu.Process.Pid<<3 | 2) // as clock_getcpuclockid(3) makes it
	_ = unix.ClockGettime(clock, &at)
	return time.Duration(at.Nano())
}

// runUntil lets the machine run until it has worked so long; it must not end by
// itself.
func (v *vm) runUntil(moment time.Duration) {
	v.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for v.worked() < moment {
		select {
		case <-tick.C:
		case <-v.over:
			v.t.Fatalf("the machine ended by itself; its console:\n%s", v.console())
		}
	}
}

// cut takes the power away: everything the machine did not send to its disk is
// gone.
func (v *vm) cut() {
	v.once.Do(func() { _ = v.qemu.Process.Kill() })
	<-v.over
}

// rest are the events that nobody waited for, of a machine that was cut.
func (v *vm) rest() []event {
	var out []event
	for e := range v.said {
		out = append(out, e)
	}
	if strings.Contains(v.console(), "nox: failed") || strings.Contains(v.console(), "EXT4-fs error") {
		v.t.Fatalf("the machine says:\n%s", v.console())
	}
	return out
}
