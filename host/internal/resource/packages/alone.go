package packages

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// alone does something for which nobody may hold the database, one at a time.
// A lock is waited for. One that no process holds is of a dead one, and is
// taken away: at once when it is older than the boot or when a run of ours was
// interrupted, else only after it was waited for, because some script may have
// made it by hand for a moment.
//
// Between the look and the manager somebody may take the lock all the same: then
// the manager says so, and is tried again.
func (k *Kind) alone(ctx context.Context, name string, do func() error) error {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return fmt.Errorf("others were not done in time: %w", ctx.Err())
	}
	end := k.Clock.Now().Add(k.patience)
	waited := func() bool { return !k.Clock.Now().Before(end) }
	for {
		if err := k.free(ctx, name, waited); err != nil {
			return err
		}
		err := do()
		if err == nil || ctx.Err() != nil || waited() {
			return err
		}
		if l, lookErr := k.Manager.Lock(); lookErr != nil || l.By == "" {
			return err
		}
	}
}

// free returns when nobody holds the database.
func (k *Kind) free(ctx context.Context, name string, waited func() bool) error {
	t := time.NewTicker(k.tick)
	defer t.Stop()
	for {
		l, err := k.Manager.Lock()
		if err != nil || l.By == "" {
			return err
		}
		hand, err := k.hand(name)
		if err != nil {
			return err
		}
		if l.Break != nil && (l.Old || hand != nil || waited()) {
			if err := l.Break(); err != nil {
				return fmt.Errorf("cannot take away the lock of a dead %s: %w", k.Manager.Name(), err)
			}
			continue
		}
		if waited() {
			return fmt.Errorf("the package database is in use by %s, for more than %s", l.By, k.patience)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the package database is in use by %s", l.By), ctx.Err())
		}
	}
}
