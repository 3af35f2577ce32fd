package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/link/client"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// NewIdentity implements Host: it makes this machine, a copy of another with the
// identity of that one, a node of its own. The new identity is made beside the old
// one, and takes its place when the mesh has admitted it: until then the machine is
// what it was, and the same command goes on.
func (s *Service) NewIdentity(ctx context.Context, text string) (Enrolled, error) {
	token, err := link.ParseToken([]byte(text))
	if err != nil {
		return Enrolled{}, err
	}
	s.enrolling.Lock()
	defer s.enrolling.Unlock()
	switch mesh := s.mesh(); {
	case mesh == "":
		return Enrolled{}, fault.Refusedf("this machine has no identity to replace").Hint("mesh-host enrol - makes it a node")
	case mesh != token.Mesh:
		return Enrolled{}, fault.Refusedf("this machine is in mesh %q, and the token is of mesh %q", mesh, token.Mesh).
			Hint("mesh-host retire leaves the one it is in")
	}
	limit, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	cfg := s.enrolment(limit, token)
	cfg.Path = s.newIdentityPath()
	id, err := client.Enrol(limit, cfg)
	switch {
	case errors.Is(err, client.ErrPending):
		return Enrolled{Mesh: token.Mesh, Pending: true}, nil
	case err != nil && !errors.Is(err, client.ErrAlreadyEnrolled): // that is one that was made, and did not take its place
		return Enrolled{}, err
	}
	s.endLink()
	defer s.hold()
	if err := s.former.forget(); err != nil { // the other node's
		return Enrolled{}, err
	}
	if err := durable.Rename(cfg.Path, s.Layout.HostIdentity()); err != nil {
		return Enrolled{}, fmt.Errorf("cannot put the new identity in the place of the old one: %w", err)
	}
	s.mu.Lock()
	s.identity, s.unknown = id, nil
	s.mu.Unlock()
	return Enrolled{Mesh: id.Mesh, Node: id.Name, NodeID: id.NodeID}, nil
}

// newIdentityPath is where an identity waits to take the place of the one there is.
func (s *Service) newIdentityPath() string {
	return filepath.Join(s.Layout.HostState(), "identity.new.json")
}
