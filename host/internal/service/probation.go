package service

import (
	"context"

	"github.com/nox-mesh/nox-mesh/host/internal/launcher"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

// A version proves itself by having been up for launcher.Probation and having
// made one complete pass. What became of a resource, the link and the network
// have no say in it.

// prove makes the version that runs the one that is put back when a later one
// fails. What cannot be done now (a full disk) is tried again after the next
// pass.
func (s *Service) prove() (done bool) {
	proved, err := launcher.Prove(s.Layout.Launcher())
	if err != nil {
		s.Log.Error("this version has proved itself, and that cannot be kept", "version", version.Running(), "cause", err)
		return false
	}
	if proved {
		s.Log.Info("this version has proved itself", "version", version.Running())
	}
	if err := s.keepProven(); err != nil {
		s.Log.Error("where this version came from cannot be kept: a later one that fails may stay in the package database", "cause", err)
		return false
	}
	return true
}

// probation is what the service waits for until its version has proved itself.
type probation struct {
	lasted, passed, over bool
}

// due reports whether it is time to prove.
func (p *probation) due() bool { return p.lasted && p.passed && !p.over }

// stoppedByRequest has a start not counted that ends because it was asked to.
func (s *Service) stoppedByRequest(ctx context.Context) {
	if ctx.Err() == nil {
		return
	}
	if err := launcher.StoppedByRequest(s.Layout.LauncherDir()); err != nil {
		s.Log.Error("the launcher does not hear that this end was asked for", "cause", err)
	}
}
