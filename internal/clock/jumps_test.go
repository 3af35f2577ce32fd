package clock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The machine's clock is set in lab/powercut, in a machine of the test's own;
// here, that it is watched as it must be, and that who waits is not held.
func TestH12TheClockIsWatchedUntilTheContextEnds(t *testing.T) {
	j, err := WatchJumps()
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	c, err := j.timer.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// fdinfo says how the timer was set (proc_pid_fdinfo(5)).
	var info []byte
	if err := c.Control(func(fd uintptr) { info, err = os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd)) }); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("settime flags: 0%o", unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET)
	if err != nil || !strings.Contains(string(info), "clockid: 0\n") || !strings.Contains(string(info), want) {
		t.Errorf("%v, want %q:\n%s", err, want, info)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- j.Await(ctx) }()
	select {
	case err := <-ended:
		t.Fatalf("nobody set the clock: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
