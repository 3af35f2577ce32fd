// Package apply makes a machine what its declaration says.
//
// One door, Accept, takes a declaration from a bundle, a file or the link:
// parse, rules, order; then it is the one in force. Reconcile compares it with
// the store and the machine and does what is needed:
//
//	settle   what an earlier run was killed in the middle of, by looking
//	fetch    the content that is declared and not here
//	remove   what is owned and no longer declared, the last applied first
//	apply    each resource, in order: check; intent, act, look, record
//
// Removal comes first, so that a port, a name or a path is free for what takes
// its place. A failed resource fails alone; what waits for it is skipped.
//
// It never lies: a resource is good when a look at the machine says so, a
// record is written after the thing worked. It may be killed at any instant;
// the intents say what to look at then. A pass that finds all as declared
// writes nothing.
package apply

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

const (
	// Deadline is how long one resource may take.
	Deadline = 5 * time.Minute
	// Grace is how much longer the resource in hand may take when the host is
	// to stop. It ends before the unit's TimeoutStopSec (30 s) does.
	Grace = 20 * time.Second
)

// Content makes sure that content is in the content store.
type Content interface {
	// Ensure returns nil when the blob is here, fetching it if it can.
	Ensure(ctx context.Context, d digest.Digest) error
}

// Engine applies declarations. Accept, Plan and Busy may be called at any
// time; Reconcile by one goroutine at a time.
type Engine struct {
	Store   *store.Store
	Kinds   map[declaration.Type]resource.Kind
	Content Content
	Layout  layout.Layout
	Clock   clock.Clock
	Log     *slog.Logger
	// Mesh names the mesh the machine is a node of, or is "".
	Mesh func() string
	// Version is the version of the running host, for reports.
	Version string
	// Deadline bounds one resource; 0 is the constant.
	Deadline time.Duration

	mu   sync.Mutex
	busy *Busy
}

// Busy says what the engine is at.
type Busy struct {
	Key   string    `json:"key"`
	Since time.Time `json:"since"`
}

// Busy returns the resource that is being worked on, or nil.
func (e *Engine) Busy() *Busy {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.busy
}

// on bounds the work on one resource and says what is being worked on. When
// the pass ends before it, what is in hand has Grace to be finished and
// recorded.
func (e *Engine) on(pass context.Context, key string) (context.Context, func()) {
	limit := e.Deadline
	if limit == 0 {
		limit = Deadline
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(pass), limit)
	unlink := context.AfterFunc(pass, func() {
		last := time.AfterFunc(Grace, cancel)
		context.AfterFunc(ctx, func() { last.Stop() })
	})
	e.mu.Lock()
	e.busy = &Busy{Key: key, Since: e.Clock.Now()}
	e.mu.Unlock()
	return ctx, func() {
		unlink()
		cancel()
		e.mu.Lock()
		e.busy = nil
		e.mu.Unlock()
	}
}
