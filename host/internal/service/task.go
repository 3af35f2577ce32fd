package service

import (
	"context"
	"sync"
)

// task is something that runs beside the loop until it is ended, at most once
// at a time. The zero value is one that does not run.
type task struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}
}

// begin runs f until it returns or end is called. owner waits for it.
func (t *task) begin(ctx context.Context, owner *sync.WaitGroup, f func(context.Context)) {
	t.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, t.cancel = context.WithCancel(ctx)
	done := make(chan struct{})
	t.done = done
	owner.Go(func() {
		defer close(done)
		f(ctx)
	})
}

// end ends what runs, and returns when it has.
func (t *task) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
		<-t.done
		t.cancel = nil
	}
}
