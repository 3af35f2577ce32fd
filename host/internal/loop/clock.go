package loop

import (
	"context"
	"log/slog"
	"time"
)

// TriggerClock: the machine's clock was set, or the machine woke from a suspend.
// The timer does not run while a machine sleeps, and what is on it may go by the
// time of day.
const TriggerClock = "clock"

// Jumps are those of the machine's clock.
type Jumps interface {
	// Await returns nil when the clock has jumped since it last did, at once when
	// it already has. Its error is that of ctx, or says why no jump is noticed any
	// more.
	Await(ctx context.Context) error
}

const (
	// calm is how long the next pass because of the clock has to wait after one: a
	// clock that is set every second makes a pass a minute. The last jump always
	// has a pass that begins after it.
	calm = time.Minute
	// silence is how long such a pass is not spoken of after one that was.
	silence = time.Hour
)

// HeedClock asks for a pass soon after each jump of the clock, until ctx ends.
func (l *Loop) HeedClock(ctx context.Context, clock Jumps, log *slog.Logger) {
	spoken := time.NewTimer(0)
	defer spoken.Stop()
	for {
		if err := clock.Await(ctx); err != nil {
			if ctx.Err() == nil {
				log.Warn("when the clock is set is not noticed any more", "cause", err)
			}
			return
		}
		select {
		case <-spoken.C:
			log.Info("the clock was set, or the machine slept: everything is looked at now")
			spoken.Reset(silence)
		default:
		}
		l.Trigger(ctx, TriggerClock)
		select {
		case <-time.After(calm):
		case <-ctx.Done():
		}
	}
}
