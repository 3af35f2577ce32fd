package client

import (
	"testing"
	"time"
)

func TestWaitsGrowAndAreRandom(t *testing.T) {
	b := backoff{min: 500 * time.Millisecond, max: 60 * time.Second}
	seen := map[time.Duration]bool{}
	for _, ceiling := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
		16 * time.Second, 32 * time.Second, 60 * time.Second, 60 * time.Second} {
		w := b.next()
		if b.ceiling != ceiling || w < 0 || w >= ceiling {
			t.Errorf("%v of %v, want less than %v", w, b.ceiling, ceiling)
		}
		seen[w] = true
	}
	if len(seen) < 5 {
		t.Error("the waits are not random:", seen)
	}
	b.reset()
	if b.next(); b.ceiling != 500*time.Millisecond {
		t.Error("after a reset:", b.ceiling)
	}
}
