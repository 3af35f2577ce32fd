package wire

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// Seen is when nodes were last heard of, in memory; what changed is written in
// batches.
type Seen struct {
	clock clock.Clock
	mu    sync.Mutex
	at    map[string]time.Time
	fresh map[string]time.Time
}

func newSeen(c clock.Clock) *Seen {
	return &Seen{clock: c, at: map[string]time.Time{}, fresh: map[string]time.Time{}}
}

func (s *Seen) touch(node string) {
	now := s.clock.Now().UTC()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[node], s.fresh[node] = now, now
}

// At returns when a node was heard of since the start, zero if it was not.
func (s *Seen) At(node string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[node]
}

// flush writes what changed since the last time.
func (s *Seen) flush(store *state.Store) error {
	s.mu.Lock()
	fresh := s.fresh
	s.fresh = map[string]time.Time{}
	s.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	err := store.Update(func(tx *state.Tx) error { return tx.PutSeen(fresh) })
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		maps.Copy(fresh, s.fresh) // the newer wins
		s.fresh = fresh
	}
	return err
}

// keepSeen flushes each minute until ctx ends.
func (s *Server) keepSeen(ctx context.Context) {
	tick := time.NewTicker(seenInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.writeSeen()
		}
	}
}

func (s *Server) writeSeen() {
	if err := s.Seen.flush(s.office.Store); err != nil {
		s.log.Error("cannot write when nodes were last seen", "error", err)
	}
}
