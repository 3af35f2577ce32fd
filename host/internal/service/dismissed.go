package service

import (
	"context"

	"github.com/nox-mesh/nox-mesh/host/internal/loop"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// A mesh that retires a node sends it a last declaration. It is put in force like
// that of a person who retires the machine, and the passes that follow take away what
// the host owns; the one that leaves nothing to own is followed by the walk of
// Retire, which finds nothing to take away, says so, and forgets the identity. Killed
// anywhere, the next pass goes on with it.

// dismissed puts the last declaration in force.
func (s *Service) dismissed(ctx context.Context, m link.DeclarationMessage) error {
	if err := s.declareLast(m.Leave, true); err != nil {
		return err
	}
	s.loop.Trigger(ctx, loop.TriggerDeclaration)
	return nil
}

// leaveWhenEmpty leaves the mesh if that retired this node and the host owns nothing
// any more. It does so beside the loop, which Retire asks for a last pass.
func (s *Service) leaveWhenEmpty(ctx context.Context) {
	w, err := s.store.About()
	if err != nil || w == nil || w.Source != store.SourceRetire || !w.Dismissed || !s.served || s.retiring(w) == "" {
		return
	}
	records, err := s.store.Records()
	if err != nil || len(records) > 0 || !s.leavingNow.CompareAndSwap(false, true) {
		return
	}
	s.running.Go(func() {
		defer s.leavingNow.Store(false)
		out, err := s.Retire(s.ctx, RetireRequest{KeepResources: w.Leave})
		switch {
		case err != nil:
			s.Log.Error("this node cannot leave its mesh", "cause", err)
		case out.Forgotten:
			s.Log.Info("this node left its mesh", "mesh", out.Mesh, "node", out.Node)
		}
	})
}
