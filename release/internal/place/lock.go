package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// ErrGone is in the chain of the error for a parent that was removed or replaced
// while its lock was waited for: the lock would be on a directory that nobody else
// finds. Open and Lock again.
var ErrGone = errors.New("it is not there any more")

// Lock waits until nobody else changes what is in the parents of the places. The
// lock is flock(2) on the parent itself, which outlives no process, leaves no file,
// and can be had by who may only read there. So can it by a stranger, who holds us up
// by it: after a second the Note of the place says what is waited for.
func Lock(ctx context.Context, places ...*Place) error {
	slices.SortFunc(places, func(a, b *Place) int { return slices.Compare(a.id[:], b.id[:]) })
	places = slices.CompactFunc(places, func(a, b *Place) bool { return a.id == b.id })
	for _, p := range places {
		if err := p.lock(ctx); err != nil {
			return fmt.Errorf("cannot lock %q: %w", p.parent.Name(), err)
		}
	}
	return nil
}

func (p *Place) lock(ctx context.Context) error {
	err := flock(ctx, p.parent.FD(), func() {
		if p.Note != nil {
			p.Note(fmt.Sprintf("waiting for another program, which has locked %q: \"lslocks\" shows it", p.parent.Name()))
		}
	})
	if err != nil {
		return err
	}
	return p.stillThere()
}

// The lock is asked for anew after each pause; it takes long after a second.
const (
	pause = 20 * time.Millisecond
	long  = time.Second / pause
)

// flock calls waits once when it takes long.
func flock(ctx context.Context, fd int, waits func()) error {
	for tries := 0; ; tries++ {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if tries == int(long) {
			waits()
		}
		// A blocking flock could not be given up.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// stillThere holds that the parent is what its name leads to.
func (p *Place) stillThere() error {
	var st unix.Stat_t
	err := unix.Stat(p.parent.Name(), &st)
	if errors.Is(err, unix.ENOENT) || err == nil && inodeOf(&st) != p.id {
		return fault.Failedf("%w", ErrGone).Hint("run it again")
	}
	return err
}
