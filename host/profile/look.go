package profile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

// looks are those that are not done, at most one for each fact of each root.
// A system call that hangs (statfs(2) of a file system whose server is gone)
// ends by nobody's deadline, and holds its goroutine and its thread until it
// does; whoever asks meanwhile waits for that one, and leaves no second. Once
// one has waited in vain nobody else does.
type looks struct {
	mu   sync.Mutex
	open map[string]*look
}

// A look is one that goes on. Found and err are to be read once done is closed.
type look struct {
	done  chan struct{}
	found finding
	err   error
	// hangs says that it did not answer in time.
	hangs atomic.Bool
}

// ask looks for f, or waits for the look that goes on already, no longer than
// f's limit and ctx.
func (l *looks) ask(ctx context.Context, s source, f fact) (finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, errStopped
	}
	k := l.begin(ctx, s, f)
	limit := f.limit
	if k.hangs.Load() {
		limit = 0
	}
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-k.done:
		if late(k.err) {
			return k.found, tooLate(f)
		}
		return k.found, k.err
	case <-wait.Done():
		if ctx.Err() != nil {
			return nil, errStopped
		}
		k.hangs.Store(true)
		return nil, tooLate(f)
	}
}

var errStopped = errors.New("the look was ended before it answered")

func tooLate(f fact) error {
	return fmt.Errorf("it did not answer within %d s", int(f.limit.Seconds()))
}

func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// begin returns the look that goes on, or a new one. It belongs to all who wait
// for it and has a deadline of its own: the end of the first who asked is not
// its end.
func (l *looks) begin(ctx context.Context, s source, f fact) *look {
	key := f.name + "\x00" + s.files.Root + "\x00" + s.kernel.Root
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.open[key]; k != nil {
		return k
	}
	if l.open == nil {
		l.open = map[string]*look{}
	}
	k := &look{done: make(chan struct{})}
	l.open[key] = k
	go func() {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.limit)
		defer cancel()
		k.found, k.err = f.look(own, s)
		l.mu.Lock()
		delete(l.open, key)
		l.mu.Unlock()
		close(k.done)
	}()
	return k
}
