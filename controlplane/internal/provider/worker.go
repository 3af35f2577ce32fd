package provider

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// enough is how many failures in a row say that it is the provider that is down.
const enough = 3

// A worker does what is written at one provider.
//
//	idle --due--> asking --all done------> idle
//	                 ^  `--some failed---> waiting
//	                 `------------(time, or due)-'
type worker struct {
	Provider
	book *Book
	due  chan struct{}
	// failed is how often each grant could not be done, in a row.
	failed map[string]int
}

// Run works until ctx ends, and has stopped when it returns.
func (b *Book) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, w := range b.workers {
		w.wake() // what the last process left
		wg.Go(func() { w.run(ctx) })
	}
	wg.Wait()
}

func (w *worker) wake() {
	select {
	case w.due <- struct{}{}:
	default: // it has not looked yet, and will see both
	}
}

func (w *worker) run(ctx context.Context) {
	var wait time.Duration
	later := time.NewTimer(0)
	later.Stop()
	defer later.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.due:
		case <-later.C:
		}
		if w.pass(ctx) {
			wait = 0
			later.Stop()
			continue
		}
		wait = min(max(2*wait, w.book.shortest), w.book.longest)
		later.Reset(wait/2 + rand.N(wait/2+1))
	}
}

// pass does all there is to do, and reports whether nothing is left. Those that
// failed least come first, so that what cannot be done holds up nothing.
func (w *worker) pass(ctx context.Context) bool {
	var open []*state.Grant
	err := w.book.store.View(func(tx *state.Tx) error {
		gs, err := tx.GrantsAt(w.Name())
		open = slices.DeleteFunc(gs, func(g *state.Grant) bool { return g.State == state.Granted })
		return err
	})
	if err != nil {
		w.book.log.Error("cannot read the grants", "provider", w.Name(), "error", err)
		return false
	}
	slices.SortStableFunc(open, func(a, b *state.Grant) int { return cmp.Compare(w.failed[a.Node], w.failed[b.Node]) })
	bad, row := 0, 0
	for _, g := range open {
		if ctx.Err() != nil || row == enough {
			return false
		}
		row++
		if err := w.do(ctx, g); err != nil {
			bad++
			w.failed[g.Node]++
			continue
		}
		row = 0
		delete(w.failed, g.Node)
	}
	return bad == 0
}

// do asks the provider one thing and writes down what came of it.
func (w *worker) do(ctx context.Context, g *state.Grant) error {
	limit, cancel := context.WithTimeout(ctx, w.book.call)
	defer cancel()
	ref, err := g.Ref, error(nil)
	if g.State == state.Granting {
		ref, err = w.Grant(limit, g.Node)
	} else {
		err = w.Revoke(limit, *g)
	}
	if ctx.Err() != nil {
		return ctx.Err() // nobody's fault, and the next start asks again
	}
	if err != nil && cli.OneLine(err.Error()) == g.Error {
		return err // said already
	}
	werr := w.book.store.Batch(func(tx *state.Tx) error {
		now, err2 := tx.Grant(g.Provider, g.Node)
		if err2 != nil || now == nil || now.State != g.State {
			return err2 // it was written off meanwhile, and is asked for again
		}
		switch {
		case err != nil:
			now.Error = cli.OneLine(err.Error())
			return tx.PutGrant(now)
		case g.State == state.Revoking:
			return tx.DeleteGrant(now)
		}
		now.State, now.Ref, now.Since, now.Error = state.Granted, ref, w.book.clock.Now().UTC(), ""
		return tx.PutGrant(now)
	})
	switch {
	case werr != nil:
		w.book.log.Error("cannot write a grant", "provider", g.Provider, "node", g.Node, "error", werr)
		return werr
	case err != nil:
		w.book.log.Warn("a grant is not "+map[state.GrantState]string{state.Granting: "made", state.Revoking: "taken away"}[g.State],
			"provider", g.Provider, "node", g.Node, "cause", err)
	}
	return err
}
