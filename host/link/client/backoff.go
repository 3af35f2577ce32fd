package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is exponential with full jitter: each wait is a random part of a
// ceiling that doubles from min to max, so that machines that lost the control
// plane at one moment do not come back at one moment.
type backoff struct{ min, max, ceiling time.Duration }

func (b *backoff) next() time.Duration {
	b.ceiling = min(max(2*b.ceiling, b.min), b.max)
	return jitter(b.ceiling)
}

func (b *backoff) reset() { b.ceiling = 0 }

func jitter(ceiling time.Duration) time.Duration {
	if ceiling <= 0 {
		return 0
	}
	return rand.N(ceiling)
}

// sleep waits for d or the end of ctx, whichever comes first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
