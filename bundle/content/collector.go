package content

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A Collector collects a store for a service that runs for years: when somebody
// says that there may be something to collect, and as soon as nobody holds a
// Lease. Who says so does not wait. A collection that failed is not repeated
// until the next time somebody does.
type Collector struct {
	store   *Store
	keepers []Keeper
	told    func(Report, error)

	due  atomic.Bool
	wake chan struct{}

	mu  sync.Mutex
	err error
}

// The first time that a store in use is left alone, and the longest.
const (
	firstWait = time.Second
	lastWait  = time.Minute
)

// Collector makes a collector. told is called after each collection, but for
// those that did not begin.
func (s *Store) Collector(told func(Report, error), keepers ...Keeper) *Collector {
	return &Collector{store: s, keepers: keepers, told: told, wake: make(chan struct{}, 1)}
}

// Due says that somebody needs less than before.
func (c *Collector) Due() {
	c.due.Store(true)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run collects until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
		for wait := firstWait; !c.Once(ctx); wait = min(2*wait, lastWait) {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
	}
}

// Once collects if that is due, and reports whether nothing is due any more.
func (c *Collector) Once(ctx context.Context) bool {
	if !c.due.Swap(false) {
		return true
	}
	r, err := c.store.Collect(ctx, c.keepers...)
	if errors.Is(err, ErrInUse) || ctx.Err() != nil {
		c.due.Store(true)
		return false
	}
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	c.told(r, err)
	return true
}

// Err is why the last collection failed, nil when it did not.
func (c *Collector) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
