package fleet

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is how a host waits: a random part of a ceiling that doubles.
type backoff struct{ ceiling time.Duration }

func (b *backoff) next() time.Duration {
	b.ceiling = min(max(2*b.ceiling, 500*time.Millisecond), time.Minute)
	return jitter(b.ceiling)
}

func jitter(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return rand.N(most)
}

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
