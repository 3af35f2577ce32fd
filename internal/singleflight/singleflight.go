// Package singleflight makes one call for all who want it at the same time, as
// golang.org/x/sync/singleflight does, of calls that may never come back: a
// statfs(2) of a file system whose server is gone ends by nobody's deadline, and
// holds its goroutine and its thread until it does.
//
// There is at most one call of a key, however often it is asked for. Whoever asks
// meanwhile waits for that one, and nobody longer than he is willing to: of what
// has gone on for that long already he is told at once. A call belongs to all who
// wait for it: it has its own deadline, and the end of the first who asked is not
// its end. A panic in it is its error.
//
// It does not promise that an answer is news. What is shared may have been found
// before its asker came; who minds asks once more.
package singleflight

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/clock"
)

var (
	// ErrLate: it was waited for in vain, and goes on.
	ErrLate = errors.New("it did not answer in time")
	// ErrHangs: it was not waited for, since it has gone on for too long already.
	ErrHangs = errors.New("an earlier call of it is not over yet")
)

// A PanicError is what a call panicked with.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

// A Group is the calls that go on, at most one of each key. Its zero value has none.
type Group[T any] struct {
	mu    sync.Mutex
	calls map[string]*call[T]
}

// A call is one that goes on. Value and err are to be read once done is closed.
type call[T any] struct {
	begun time.Time
	done  chan struct{}
	value T
	err   error
}

// Do returns what do returns, or the call of the same key that goes on already;
// shared says that it was that one. It waits until the call is wait old, or ctx
// ends: then the error is ErrLate, ErrHangs or that of ctx. A call that it begins
// is told to end after limit.
func (g *Group[T]) Do(ctx context.Context, key string, wait, limit time.Duration, do func(context.Context) (T, error)) (value T, shared bool, err error) {
	if err := ctx.Err(); err != nil {
		return value, false, err
	}
	c, shared := g.begin(ctx, key, limit, do)
	late, left := ErrLate, wait-clock.System.Now().Sub(c.begun)
	if left <= 0 {
		late = ErrHangs
	}
	over := time.NewTimer(left)
	defer over.Stop()
	select {
	case <-c.done:
	case <-over.C:
	case <-ctx.Done():
		late = ctx.Err()
	}
	select {
	case <-c.done: // it was over as well
		return c.value, shared, c.err
	default:
		return value, shared, late
	}
}

// begin returns the call that goes on, or a new one.
func (g *Group[T]) begin(ctx context.Context, key string, limit time.Duration, do func(context.Context) (T, error)) (_ *call[T], shared bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.calls[key]; c != nil {
		return c, true
	}
	if g.calls == nil {
		g.calls = map[string]*call[T]{}
	}
	c := &call[T]{begun: clock.System.Now(), done: make(chan struct{})}
	g.calls[key] = c
	go func() {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		c.value, c.err = guarded(own, do)
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.calls, key)
		close(c.done)
	}()
	return c, false
}

func guarded[T any](ctx context.Context, do func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{r, debug.Stack()}
		}
	}()
	return do(ctx)
}
