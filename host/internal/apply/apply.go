// Package apply makes a machine what its declaration says.
//
// One door, Accept, takes a declaration from a bundle, a file or the link:
// parse, rules, order; then it is the one in force. Reconcile compares it with
// the store and the machine and does what is needed:
//
//	settle   what an earlier run was killed in the middle of, by looking
//	fetch    the content that is declared and not here
//	remove   what is owned and no longer declared, the last applied first
//	apply    each resource, in order: look, decide; intent, act, look, record
//
// The decision is one function of what the look found (decide.go); a plan and
// a pass come to the same. Neighbours that do not depend on each other go each
// step together, as one wave, when their kind is the quicker for it: a thousand
// files are looked at, written down as intents, written, made durable and
// recorded each in one go. What fails in a wave is tried by itself.
//
// A resource has its time (work.go). When it is over the pass goes on without
// it, and nothing is done to it until it came back. What costs something each time
// it fails is not tried at each pass (pause.go). Who only asks, for a plan or a
// status, has his own patience, takes nothing into work and holds up no pass
// (inquire.go).
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

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/internal/singleflight"
)

// Content makes sure that content is in the content store.
type Content interface {
	// Ensure returns nil when the blob is here, fetching it if it can.
	Ensure(ctx context.Context, d digest.Digest) error
}

// Engine applies declarations. Accept, Plan, Inquire and Busy may be called at
// any time; Reconcile by one goroutine at a time.
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
	// Limits overrides how long resources of a type may take.
	Limits map[declaration.Type]Limits
	// Formerly, if set, says whether a thing was this host's before it lost its store:
	// then it is no somebody else's.
	Formerly func(key string) bool
	// Late, if set, is called when something is over that a pass did not wait
	// for: there is something to look at.
	Late func()

	// looks are those for answers.
	looks singleflight.Group[any]

	mu sync.Mutex
	// last is the declaration that was read last, and its digest.
	last       *declaration.Declaration
	lastDigest string
	// busy is what is being worked on.
	busy map[string]*hold
	// failures are of what is left alone for a while.
	failures map[string]*pause
}
