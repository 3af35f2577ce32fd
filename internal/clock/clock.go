// Package clock is the one door to the wall clock.
//
// No decision about trust or order is made by a wall clock in this project
// (declarations are ordered by epoch and generation, bundles by counter); the
// time is for people, for logs and for the life of tokens and certificates.
// Passing a Clock in lets a test live in 1970 or 2100 without touching the
// machine's own clock.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// A Clock tells the time.
type Clock interface {
	Now() time.Time
}

// System is the machine's clock.
var System Clock = system{}

type system struct{}

func (system) Now() time.Time { return time.Now() }

// At is a clock that stands still at one moment.
type At time.Time

// Now returns the moment the clock stands at.
func (a At) Now() time.Time { return time.Time(a) }

// SinceBoot is how long the machine has run since it was booted, suspends left
// out (CLOCK_MONOTONIC of clock_gettime(2)). Nobody sets it: what another program
// says by it, as systemd in its timestamps that end in Monotonic, can be compared.
func SinceBoot() time.Duration {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) // never fails for this clock
	return time.Duration(at.Nano())
}
