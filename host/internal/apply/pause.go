package apply

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// pauses are how long a resource of a type is left alone after it could not be
// applied; as long again after each more failure, up to longestPause. A type that
// is not here is tried at each pass: it costs little, and another try may be what
// helps. A container that does not run costs one that does: the old one is stopped
// for each try of the new one.
var pauses = map[declaration.Type]time.Duration{
	declaration.TypeContainer: 30 * time.Second,
}

const longestPause = time.Hour

// A pause is what is known of a resource that failed. It is kept in memory: a host
// that starts tries everything.
type pause struct {
	spec  string
	times int
	until time.Time
	err   error
}

// paused is why the resource is left alone in this pass, or nil. Another wish, what
// it uses changed, or a person who asks are each a reason to try at once.
func (e *Engine) paused(t *task, again bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.failures[t.key]
	if p == nil || again || t.restart || p.spec != string(t.want.Spec) || !e.Clock.Now().Before(p.until) {
		return nil
	}
	return p.err
}

// pause counts a failure, and returns its error with what comes of it. What was not
// tried (the store could not be written, somebody is at it) has cost nothing.
func (e *Engine) pause(t *task) error {
	first := pauses[t.typ]
	if first == 0 || errors.As(t.err, new(*leftError)) || !t.tried {
		return t.err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.failures[t.key]
	if p == nil || p.spec != string(t.want.Spec) {
		p = &pause{spec: string(t.want.Spec)}
	}
	d := first
	for range p.times {
		d = min(2*d, longestPause)
	}
	p.times++
	p.until = e.Clock.Now().Add(d)
	p.err = fmt.Errorf("%w; %s, and not again before %s unless asked (mesh-host reconcile)", t.err, tried(p.times), p.until.UTC().Format(time.RFC3339))
	if e.failures == nil {
		e.failures = map[string]*pause{}
	}
	e.failures[t.key] = p
	return p.err
}

// worked ends the pause of what could be applied. Its failures count until it was
// seen once more: it may end at once, and be as declared for just a moment.
func (e *Engine) worked(key string) {
	e.mu.Lock()
	if p := e.failures[key]; p != nil {
		p.until = e.Clock.Now()
	}
	e.mu.Unlock()
}

// stood forgets the failures of what is found as declared when its pause is over.
func (e *Engine) stood(key string) {
	e.mu.Lock()
	if p := e.failures[key]; p != nil && !e.Clock.Now().Before(p.until) {
		delete(e.failures, key)
	}
	e.mu.Unlock()
}

// forget forgets the failures of what is declared no more.
func (e *Engine) forget(d *declaration.Declaration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.failures) == 0 {
		return
	}
	declared := map[string]bool{}
	for i := range d.Resources {
		declared[d.Resources[i].Key()] = true
	}
	maps.DeleteFunc(e.failures, func(key string, _ *pause) bool { return !declared[key] })
}

func tried(n int) string {
	if n == 1 {
		return "tried once"
	}
	return fmt.Sprintf("tried %d times", n)
}
