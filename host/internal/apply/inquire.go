package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/singleflight"
)

// An Inquiry looks at resources for somebody who waits for the answer, a plan or
// a status, and not for a pass: it takes nothing into work, so a pass that comes
// meanwhile is not held up by it. He is answered though something hangs that is
// looked at: a file on a server that is gone, say, whose calls come back when it
// does. There is one look at it, however many ask, and none at what a pass left.
type Inquiry struct {
	engine   *Engine
	kinds    map[declaration.Type]resource.Kind
	patience func(declaration.Type) time.Duration
	late     atomic.Bool
}

// hurried is how much shorter each of the rest is waited for when one took too
// long: what hangs is seldom alone.
const hurried = 20

// Inquire begins an inquiry that waits so long for one resource.
func (e *Engine) Inquire(patience time.Duration) *Inquiry {
	return &Inquiry{engine: e, kinds: e.Surveyed(), patience: func(declaration.Type) time.Duration { return patience }}
}

// planning is an inquiry that waits for a resource as a pass does, within reason:
// it has as much to read.
func (e *Engine) planning() *Inquiry {
	q := e.Inquire(0)
	q.patience = func(t declaration.Type) time.Duration { return min(time.Minute, e.limitsOf(t).Patience) }
	return q
}

// Check is that of the resource's kind.
func (q *Inquiry) Check(ctx context.Context, want resource.Want, prior *resource.Record) (resource.State, error) {
	kind, ok := q.kinds[want.Resource.Type]
	if !ok {
		return resource.State{}, fmt.Errorf("this version does not know the type %q", want.Resource.Type)
	}
	of := question{want.Resource.Key(), want.Resource.Type, "check", wish(want, prior)}
	return ask(ctx, q, of, func(ctx context.Context) (resource.State, error) { return kind.Check(ctx, want, prior) })
}

// A question is what is asked of a resource, if it is of one, and of which wish.
type question struct {
	key  string
	typ  declaration.Type
	what string
	// wish tells two questions apart that get different answers. There is one look
	// for both of them at a time no less: what hangs for one hangs for the other.
	wish any
}

// wish is for what depends on what is wanted and what was applied.
func wish(want resource.Want, prior *resource.Record) string {
	s := string(want.Spec)
	if prior != nil {
		s += "\x00" + string(prior.Spec) + "\x00" + string(prior.Before)
	}
	return s
}

// An answer is to the question of that wish.
type answer[T any] struct {
	wish  any
	value T
}

// A lateError is that of what did not answer in time.
type lateError string

func (e lateError) Error() string { return string(e) }

// ask looks, or waits for the look that goes on already. What that finds may be
// older than the question, or be to another: then it is asked once more.
func ask[T any](ctx context.Context, q *Inquiry, of question, look func(context.Context) (T, error)) (T, error) {
	for again := false; ; again = true {
		found, shared, err := q.once(ctx, of, func(ctx context.Context) (any, error) {
			v, err := look(ctx)
			return answer[T]{of.wish, v}, err
		})
		a, _ := found.(answer[T])
		if !shared || again && a.wish == of.wish || ctx.Err() != nil || errors.As(err, new(lateError)) {
			return a.value, err
		}
	}
}

func (q *Inquiry) once(ctx context.Context, of question, look func(context.Context) (any, error)) (found any, shared bool, err error) {
	if why := q.engine.left(of.key); why != nil {
		return nil, false, lateError(why.Error())
	}
	patience := q.patience(of.typ)
	wait := patience
	if q.late.Load() {
		wait /= hurried
	}
	found, shared, err = q.engine.looks.Do(ctx, of.what+"\x00"+of.key, wait, patience, look)
	panicked := new(singleflight.PanicError)
	switch {
	case err == singleflight.ErrLate:
		err = lateError(fmt.Sprintf("looking at it takes more than %s", wait))
		q.late.Store(true)
	case err == singleflight.ErrHangs:
		err = lateError("an earlier look at it is not over yet")
		q.late.Store(true)
	case errors.Is(err, context.DeadlineExceeded) && !shared:
		q.late.Store(true)
	case errors.As(err, &panicked) && !shared:
		q.engine.Log.Error("internal error", "resource", of.key, "panic", panicked.Value, "stack", string(panicked.Stack))
	}
	return found, shared, err
}

// each calls do for each of so many, a few at the same time, until ctx ends.
func each(ctx context.Context, n int, do func(i int)) error {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, lookers()) {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(i)
			}
		})
	}
	all.Wait()
	return ctx.Err()
}
