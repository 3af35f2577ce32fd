//go:build machine

package powercut

import (
	"testing"
	"time"
)

// TestH12AJumpOfTheClockMakesAPass takes a file away from a host whose next pass is
// ten minutes off, and sets the clock of the machine to a year later, or suspends
// it to its memory for a moment.
func TestH12AJumpOfTheClockMakesAPass(t *testing.T) {
	l := newLab(t)
	for _, how := range []string{"set", "suspend"} {
		v := l.boot(1, "nox.jump="+how)
		began := v.await("applying", 1)
		took := v.await("done", 1).at - began.at
		v.cut()
		v.rest()
		t.Logf("%s: the file is back after %v of the machine's processor", how, took.Round(time.Millisecond))
	}
}
