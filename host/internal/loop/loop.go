// Package loop decides when the host reconciles: one pass at a time, on four
// triggers (start, a declaration, a timer, reconnect), when the clock was set
// (clock.go), and when somebody asks.
//
//	        trigger                    pass ended, none waits
//	idle ------------> running <----------------------------- running
//	 ^                   |  trigger: remembered, coalesced
//	 +-------------------+
//	   pass ended; a remembered trigger starts the next at once
//
// One goroutine owns the state; the pass runs in another, so that a hung
// resource keeps neither triggers nor the watchdog from being served. Nothing
// is lost: a trigger that comes during a pass always gets a pass that begins
// after it. Many triggers make one pass.
package loop

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// The triggers, as they are reported.
const (
	TriggerStart       = "start"
	TriggerDeclaration = "declaration"
	TriggerTimer       = "timer"
	TriggerReconnect   = "reconnect"
	TriggerPerson      = "asked"
	// TriggerLate: what a pass did not wait for is over.
	TriggerLate = "late"
)

// Result is how a pass ended. Both are nil when there was nothing declared.
type Result struct {
	Report *link.Report
	Err    error
}

// Loop runs the passes.
type Loop struct {
	pass     func(ctx context.Context, trigger string) Result
	interval atomic.Int64 // a time.Duration
	asked    chan request
	reset    chan struct{}
	// After, if it is set before Run, is called after each pass, when those who wait
	// for it have been answered. It returns at once.
	After func()
}

type request struct {
	trigger string
	// done gets the result of the pass that serves the request; nil when
	// nobody waits. It has room for one.
	done chan Result
}

// New makes a loop that calls pass, at the latest every interval (with up to a
// tenth of jitter, so that a fleet does not move as one).
func New(interval time.Duration, pass func(ctx context.Context, trigger string) Result) *Loop {
	l := &Loop{pass: pass, asked: make(chan request, 1), reset: make(chan struct{}, 1)}
	l.interval.Store(int64(interval))
	return l
}

// SetInterval changes the interval; the time until the next pass begins anew.
func (l *Loop) SetInterval(interval time.Duration) {
	l.interval.Store(int64(interval))
	select {
	case l.reset <- struct{}{}:
	default:
	}
}

// Trigger asks for a pass that begins after the call, and does not wait for it.
func (l *Loop) Trigger(ctx context.Context, trigger string) {
	select {
	case l.asked <- request{trigger: trigger}:
	case <-ctx.Done():
	}
}

// Pass asks for a pass that begins after the call, and waits for its end.
func (l *Loop) Pass(ctx context.Context, trigger string) Result {
	done := make(chan Result, 1)
	select {
	case l.asked <- request{trigger, done}:
	case <-ctx.Done():
		return Result{Err: ctx.Err()}
	}
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r // both, and this is what became of it
	default:
		return Result{Err: ctx.Err()}
	}
}

// Run serves triggers until ctx ends, and returns when the pass in hand has
// ended. alive is called at least every beat, whatever a pass does; with a
// beat of 0 it is never called.
func (l *Loop) Run(ctx context.Context, beat time.Duration, alive func()) {
	timer := time.NewTimer(l.next())
	defer timer.Stop()
	var pulse <-chan time.Time
	if beat > 0 {
		t := time.NewTicker(beat)
		defer t.Stop()
		pulse = t.C
	}
	var waiting []request
	var running []request
	ended := make(chan Result, 1)
	start := func() {
		running, waiting = waiting, nil
		trigger := triggers(running)
		go func() { ended <- l.pass(ctx, trigger) }()
	}
	for {
		select {
		case r := <-l.asked:
			waiting = append(waiting, r)
			if running == nil {
				start()
			}
		case <-timer.C:
			if waiting = append(waiting, request{trigger: TriggerTimer}); running == nil {
				start()
			}
		case res := <-ended:
			answer(running, res)
			running = nil
			if l.After != nil {
				l.After()
			}
			timer.Reset(l.next())
			if waiting != nil {
				start()
			}
		case <-l.reset:
			timer.Reset(l.next())
		case <-pulse:
			alive()
		case <-ctx.Done():
			if running != nil {
				answer(running, <-ended)
			}
			answer(waiting, Result{Err: ctx.Err()})
			return
		}
	}
}

func (l *Loop) next() time.Duration {
	interval := l.interval.Load()
	return time.Duration(interval - rand.Int64N(interval/10+1))
}

func answer(rs []request, res Result) {
	for _, r := range rs {
		if r.done != nil {
			r.done <- res
		}
	}
}

// triggers says why a pass runs: each reason once.
func triggers(rs []request) string {
	var out []string
	seen := map[string]bool{}
	for _, r := range rs {
		if !seen[r.trigger] {
			seen[r.trigger] = true
			out = append(out, r.trigger)
		}
	}
	return strings.Join(out, "+")
}
