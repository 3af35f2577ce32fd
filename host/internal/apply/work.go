package apply

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// Grace is how much longer the resource in hand may take when the host is to
// stop. It ends before the unit's TimeoutStopSec (30 s) does.
const Grace = 20 * time.Second

// Limits is how long one resource may take, at each of look, act and remove.
type Limits struct {
	// Patience is how long the rest of a pass waits for it. After that the pass
	// goes on without it, and says so.
	Patience time.Duration
	// Deadline is when it is told to give up.
	Deadline time.Duration
}

// limits are those of each type. A package manager may have a whole system to
// unpack; a file is only large.
var limits = map[declaration.Type]Limits{
	declaration.TypeFile:      {time.Minute, 30 * time.Minute},
	declaration.TypeProcess:   {2 * time.Minute, 5 * time.Minute},
	declaration.TypeUnit:      {2 * time.Minute, 5 * time.Minute},
	declaration.TypeContainer: {5 * time.Minute, 30 * time.Minute},
	declaration.TypePackage:   {5 * time.Minute, 30 * time.Minute},
}

func (e *Engine) limitsOf(t declaration.Type) Limits {
	if l, ok := e.Limits[t]; ok {
		return l
	}
	if l, ok := limits[t]; ok {
		return l
	}
	return Limits{time.Minute, 5 * time.Minute}
}

// Busy says what the engine is at.
type Busy struct {
	Key   string    `json:"key"`
	Since time.Time `json:"since"`
	// Seconds is for how long: the clock may have been set since.
	Seconds int64 `json:"seconds"`
}

// Busy returns the resource that has been worked on for the longest time, or
// nil.
func (e *Engine) Busy() *Busy {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b *Busy
	for key, h := range e.busy {
		if b == nil || h.since.Before(b.Since) || h.since.Equal(b.Since) && key < b.Key {
			b = &Busy{Key: key, Since: h.since}
		}
	}
	if b != nil {
		b.Seconds = int64(e.Clock.Now().Sub(b.Since) / time.Second)
	}
	return b
}

// A hold is on a resource that is worked on.
type hold struct {
	since time.Time
	// left: the pass that works on it does not wait for it any more.
	left bool
}

// begin takes the resource into work, unless it is: what did not come back in
// an earlier pass is still at it.
func (e *Engine) begin(key string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.busy[key]; h != nil {
		return stillBusy(e.Clock.Now().Sub(h.since))
	}
	if e.busy == nil {
		e.busy = map[string]*hold{}
	}
	e.busy[key] = &hold{since: e.Clock.Now()}
	return nil
}

// left is why there is no use in looking at a resource: a pass left it, and it
// has not come back. It is nil for what is only in hand.
func (e *Engine) left(key string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.busy[key]; h != nil && h.left {
		return stillBusy(e.Clock.Now().Sub(h.since))
	}
	return nil
}

func stillBusy(d time.Duration) error {
	return fmt.Errorf("it is still being worked on, for %s", d.Round(time.Second))
}

func (e *Engine) end(key string) {
	e.mu.Lock()
	delete(e.busy, key)
	e.mu.Unlock()
}

// A leftError is that of a resource that a pass does not wait for any more.
type leftError struct{ patience time.Duration }

func (e *leftError) Error() string {
	return fmt.Sprintf("not done after %s: it goes on, and a later pass looks at it again", e.patience)
}

// A job is a resource that is worked on, in several turns.
type job struct {
	key string
	typ declaration.Type
	// err says why its last turn did not do what it was to do.
	err error
}

// A turn is one piece of work. Its fate is decided once: it came back in time,
// or it was left.
type turn struct {
	*job
	fate atomic.Int32
}

const (
	cameBack = 1 + iota
	left
)

const (
	// soon is how long one is waited for before the next begins as well; the less the
	// more of them there are.
	soon = 2 * time.Second
	// maxSlow bounds those that the next did not wait for: each may hold a thread.
	maxSlow = 256
)

// work gives each job a turn, at most width of them at once, and waits for them
// as long as their types allow. One that is left goes on until its deadline,
// holding nobody, and nothing that it says counts; its key stays busy. A panic
// of one is its error: one bad resource must not take the host down at each
// pass.
//
// One that takes long does not keep the next from beginning: what hangs is seldom
// alone, and the patience for each after the other would be hours.
//
// When pass ends, what is in hand has Grace to be finished and recorded.
func (e *Engine) work(pass context.Context, jobs []*job, width int, do func(ctx context.Context, i int) error) {
	slots, turns := make(chan struct{}, width), make([]turn, len(jobs))
	var over sync.WaitGroup
	var slow atomic.Int32
	for i, j := range jobs {
		slots <- struct{}{}
		over.Add(1)
		turns[i].job = j
		next := sync.OnceFunc(func() { <-slots })
		long := time.AfterFunc(soon/time.Duration(1+slow.Load()), func() {
			if slow.Add(1) <= maxSlow {
				next()
			}
		})
		e.start(pass, &turns[i], func(ctx context.Context) error { return do(ctx, i) }, func() { long.Stop(); next(); over.Done() })
	}
	over.Wait()
	for i, j := range jobs {
		if turns[i].fate.Load() == left {
			j.err = &leftError{e.limitsOf(j.typ).Patience}
		}
	}
}

// start begins a turn, and calls free once when it is over or left.
func (e *Engine) start(pass context.Context, t *turn, do func(context.Context) error, free func()) {
	if t.err = e.begin(t.key); t.err != nil {
		free()
		return
	}
	limits := e.limitsOf(t.typ)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(pass), limits.Deadline)
	leave := func() {
		// It holds its key until its fate is decided, and then ends that.
		e.mu.Lock()
		leaves := t.fate.CompareAndSwap(0, left)
		if leaves {
			e.busy[t.key].left = true
		}
		e.mu.Unlock()
		if leaves {
			free()
		}
	}
	patience := time.AfterFunc(limits.Patience, leave)
	unlink := context.AfterFunc(pass, func() {
		time.AfterFunc(Grace, cancel)
		time.AfterFunc(Grace+time.Second, leave)
	})
	go func() {
		err := e.guarded(t.key, func() error { return do(ctx) })
		inTime := t.fate.CompareAndSwap(0, cameBack)
		e.end(t.key)
		patience.Stop()
		unlink()
		if inTime {
			t.err = err
			free()
		} else {
			e.cameLate(t.key)
		}
		cancel()
	}()
}

func (e *Engine) guarded(key string, do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e.Log.Error("internal error", "resource", key, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	return do()
}

func (e *Engine) cameLate(key string) {
	e.Log.Info("what took too long is over", "resource", key)
	if e.Late != nil {
		e.Late()
	}
}
