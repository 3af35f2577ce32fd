package provider

import (
	"context"
	"log/slog"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// Content is the name of the control plane's own content endpoint.
const Content = "content"

// A Provider is something that lets a node in by a grant of its own.
//
// Both methods are idempotent, may be killed anywhere and return soon after ctx
// ends. One provider is asked one thing at a time.
type Provider interface {
	// Name is a word without "/", the same for ever.
	Name() string
	// Grant lets a node in and returns what the provider calls that, or "". Asked
	// again, it returns the grant that is there.
	Grant(ctx context.Context, node string) (ref string, err error)
	// Revoke takes away whatever the node of g has there; g.Ref is empty when the
	// answer of Grant was never heard. nil means that it is worth nothing any more.
	Revoke(ctx context.Context, g state.Grant) error
}

// A Book is the list of grants, and whoever works it off. nil is a book with the
// content endpoint alone that nobody works off.
type Book struct {
	store   *state.Store
	clock   clock.Clock
	log     *slog.Logger
	workers []*worker
	// shortest and longest bound the wait after a failure; call bounds one question.
	shortest, longest, call time.Duration
}

// NewBook returns a book without providers; Register adds them, and Run works.
func NewBook(s *state.Store, c clock.Clock, log *slog.Logger) *Book {
	return &Book{store: s, clock: c, log: log, shortest: time.Second, longest: 5 * time.Minute, call: 10 * time.Second}
}

// Register adds a provider, before Run and before the first node is admitted.
func (b *Book) Register(p Provider) {
	b.workers = append(b.workers, &worker{Provider: p, book: b, due: make(chan struct{}, 1), failed: map[string]int{}})
}

// names are those of the providers, the content endpoint first.
func (b *Book) names() []string {
	out := []string{Content}
	if b == nil {
		return out
	}
	for _, w := range b.workers {
		if w.Name() != Content {
			out = append(out, w.Name())
		}
	}
	return out
}

// Due wakes the workers.
func (b *Book) Due() {
	if b == nil {
		return
	}
	for _, w := range b.workers {
		w.wake()
	}
}

// Admit writes a node's grants, those it does not have, in the transaction that
// makes it a member. It reports whether there was one to write.
func (b *Book) Admit(tx *state.Tx, node string, now time.Time) (changed bool, err error) {
	for _, name := range b.names() {
		g, err := tx.Grant(name, node)
		if err != nil {
			return changed, err
		}
		if g != nil && g.State != state.Revoking {
			continue
		}
		g = &state.Grant{Node: node, Provider: name, State: state.Granting, Since: now}
		if name == Content {
			g.State = state.Granted // the record is the grant
		}
		changed = true
		if err := tx.PutGrant(g); err != nil {
			return changed, err
		}
	}
	if changed {
		tx.OnCommit(b.Due)
	}
	return changed, nil
}

// Revoke writes off all that a node holds, in the transaction that ends its being
// a member.
func (b *Book) Revoke(tx *state.Tx, node string, now time.Time) error {
	gs, err := tx.GrantsOf(node)
	if err != nil {
		return err
	}
	for _, g := range gs {
		if g.State == state.Revoking {
			continue
		}
		g.State, g.Since, g.Error = state.Revoking, now, ""
		if err := tx.PutGrant(g); err != nil {
			return err
		}
	}
	tx.OnCommit(b.Due)
	return nil
}

// Complete gives every member the grants it does not have: those of a state from
// before there were any, and those of a provider that is new.
func (b *Book) Complete() error {
	var lacking []string
	complete := func(tx *state.Tx) error {
		lacking = nil
		nodes, err := tx.Nodes()
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if !n.Member() {
				continue
			}
			for _, name := range b.names() {
				g, err := tx.Grant(name, n.ID)
				if err != nil {
					return err
				}
				if g == nil || g.State == state.Revoking {
					lacking = append(lacking, n.ID)
					break
				}
			}
		}
		return nil
	}
	if err := b.store.View(complete); err != nil || len(lacking) == 0 {
		return err
	}
	return b.store.Update(func(tx *state.Tx) error {
		if err := complete(tx); err != nil {
			return err
		}
		for _, id := range lacking {
			if _, err := b.Admit(tx, id, b.clock.Now().UTC()); err != nil {
				return err
			}
		}
		return nil
	})
}

// Holds says whether a node holds a grant that is good.
func Holds(tx *state.Tx, provider, node string) (bool, error) {
	g, err := tx.Grant(provider, node)
	return g != nil && g.State == state.Granted, err
}
