// Package clock is the one door to the wall clock.
//
// No decision about trust or order is made by a wall clock in this project
// (declarations are ordered by epoch and generation, bundles by counter); the
// time is for people, for logs and for the life of tokens and certificates.
// Passing a Clock in lets a test live in 1970 or 2100 without touching the
// machine's own clock.
package clock

import "time"

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
