package wire

import (
	"fmt"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// ApplyTime is how long a node that is connected may take to apply what it was
// sent before somebody is told: a host that refuses its declaration may say so
// in its own log only.
const ApplyTime = time.Minute

// BehindSince returns since when a node that is connected could have applied its
// declaration and has not, once that is longer than ApplyTime; zero for any
// other node.
func (s *Server) BehindSince(n *state.Node, epoch uint64) time.Time {
	since, connected := s.Links.Since(n.ID)
	if !connected || !n.Behind(epoch) {
		return time.Time{}
	}
	if n.Wanted.At.After(since) {
		since = n.Wanted.At
	}
	if s.now().Sub(since) < ApplyTime {
		return time.Time{}
	}
	return since
}

// notApplied writes down that a node has not applied what it was sent a while
// ago, if that is so.
func (s *Server) notApplied(n *state.Node) {
	err := s.office.Store.Batch(func(tx *state.Tx) error {
		now, mesh, err := standing(tx, n)
		if err != nil || !now.Behind(mesh.Epoch) {
			return err
		}
		s.log.Warn("node has not applied its declaration", "node", now.Name, "generation", now.Wanted.Generation)
		return tx.AddEvent(&state.Event{At: s.now(), Kind: "node.behind", Node: now.ID, Sentence: fmt.Sprintf(
			"node %q was sent generation %d and has not applied it after %s; the log of its mesh-host says why",
			now.Name, now.Wanted.Generation, cli.Span(s.apply))})
	})
	if err != nil {
		s.log.Error("cannot look whether a node has applied its declaration", "node", n.Name, "error", err)
	}
}
