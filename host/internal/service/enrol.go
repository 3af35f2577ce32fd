package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/loop"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/link/client"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

const (
	// answerTime is how long an enrolment may take before the caller is told
	// how it stands. A machine that has to be admitted by a person goes on
	// asking after that.
	answerTime = 15 * time.Second
	// firstDeclaration is how long an enrolment waits for the mesh's declaration
	// to be applied once, before it says that it is still coming.
	firstDeclaration = 20 * time.Second
)

// Enrol implements Host.
func (s *Service) Enrol(ctx context.Context, text string) (Enrolled, error) {
	token, err := link.ParseToken([]byte(text))
	if err != nil {
		return Enrolled{}, err
	}
	s.enrolling.Lock()
	defer s.enrolling.Unlock()
	if err := s.letGo(); err != nil {
		return Enrolled{}, err
	}
	defer s.hold()
	limit, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	id, err := s.redeem(limit, token)
	switch {
	case errors.Is(err, client.ErrPending):
		s.keepAsking(token)
		return Enrolled{Mesh: token.Mesh, Pending: true, Asking: s.served}, nil
	case errors.Is(err, client.ErrAlreadyEnrolled):
		return Enrolled{Mesh: id.Mesh, Node: id.Name, NodeID: id.NodeID, Already: true}, nil
	case err != nil:
		return Enrolled{}, err
	}
	out := Enrolled{Mesh: id.Mesh, Node: id.Name, NodeID: id.NodeID}
	if s.served {
		s.hold()
		wait, cancel := context.WithTimeout(ctx, firstDeclaration)
		defer cancel()
		out.Declared = s.await(wait, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.last != nil && s.last.Mesh == id.Mesh
		})
	}
	return out, nil
}

// redeem walks the enrolment and takes the identity it ends with.
func (s *Service) redeem(ctx context.Context, token link.Token) (*client.Identity, error) {
	wanted, err := s.store.Wanted()
	if err != nil {
		return nil, err
	}
	cfg := s.enrolment(ctx, token)
	if wanted != nil && wanted.Source != store.SourceLink && wanted.Source != store.SourceRetire {
		cfg.Declaration = wanted.Document
	}
	id, err := client.Enrol(ctx, cfg)
	if id != nil {
		s.mu.Lock()
		s.identity, s.unknown = id, nil
		s.mu.Unlock()
	}
	return id, err
}

func (s *Service) enrolment(ctx context.Context, token link.Token) client.EnrolConfig {
	return client.EnrolConfig{
		Token: token, Path: s.Layout.HostIdentity(), Clock: s.Clock, Log: s.Log, Version: version.Running(),
		Facts: func() (profile.Profile, profile.Inventory) { return s.facts(ctx) },
	}
}

// keepAsking goes on with an enrolment that waits for a person, as long as the
// service lives or until another enrolment begins. The token is in memory only.
func (s *Service) keepAsking(token link.Token) {
	if !s.served {
		return
	}
	s.asking.begin(s.ctx, &s.running, func(ctx context.Context) {
		if _, err := s.redeem(ctx, token); err != nil {
			if ctx.Err() == nil {
				s.Log.Error("enrolment", "cause", err)
			}
			return
		}
		s.hold()
	})
}

// letGo ends what an earlier enrolment left going, so that this one alone
// writes the identity: one that waits for a person, or the link of a node that
// was revoked. A node that is in order keeps its link.
func (s *Service) letGo() error {
	s.asking.end()
	id, err := client.LoadIdentity(s.Layout.HostIdentity())
	if err != nil || id == nil || id.Stage == client.StageActive && id.Revoked == "" {
		return err
	}
	s.mu.Lock()
	s.link = nil
	s.mu.Unlock()
	s.holding.end()
	return nil
}

// hold begins to hold the link, unless it does already. A candidate identity
// is held too: the link completes it.
func (s *Service) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.served || s.link != nil || s.identity == nil || s.identity.Stage == client.StageEnrolling {
		return
	}
	l := s.newLink(outbox{s})
	s.link = l
	s.holding.begin(s.ctx, &s.running, func(ctx context.Context) {
		if err := l.Run(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("link", "cause", err)
		}
	})
}

func (s *Service) newLink(o client.Outbox) *client.Client {
	var p profile.Profile // of the inventory before it
	return client.New(client.Config{
		Path: s.Layout.HostIdentity(), Handler: linkHandler{s}, Outbox: o, Have: s.have,
		Inventory: func() (inv profile.Inventory) { p, inv = s.facts(s.ctx); return inv },
		Profile:   func() profile.Profile { return p }, Clock: s.Clock, Log: s.Log,
	})
}

// have is what is in force of the mesh, for this node; nil for nothing.
func (s *Service) have() *link.Position {
	w, err := s.store.About()
	if err != nil || w == nil || w.Source != store.SourceLink || w.Mesh != s.mesh() || w.Node != s.node() {
		return nil
	}
	return &link.Position{Epoch: w.Epoch, Generation: w.Generation, Digest: w.Digest}
}

// facts are what the machine can run, and what it has.
func (s *Service) facts(ctx context.Context) (profile.Profile, profile.Inventory) {
	p, inv := profile.Look(ctx, s.Layout)
	inv.Version = version.Running()
	records, err := s.store.Records()
	if err != nil {
		s.Log.Error("inventory", "cause", err)
	}
	for _, r := range records {
		inv.Owned = append(inv.Owned, r.Key)
	}
	return p, inv
}

// linkHandler is what the link does to the host.
type linkHandler struct{ s *Service }

// Declaration takes what the mesh declares, durably; the loop applies it.
func (h linkHandler) Declaration(ctx context.Context, m link.DeclarationMessage) error {
	h.s.mu.Lock()
	l := h.s.link
	h.s.mu.Unlock()
	if err := h.s.recall(ctx, l); err != nil {
		return err
	}
	return h.take(ctx, m)
}

func (h linkHandler) take(ctx context.Context, m link.DeclarationMessage) error {
	if m.Final {
		return h.s.dismissed(ctx, m)
	}
	fresh, err := h.s.engine.Accept(ctx, store.Wanted{Source: store.SourceLink, Mesh: m.Mesh, Epoch: m.Epoch, Node: h.s.node(), Enrolment: h.s.enrolmentID(), Document: m.Document}, false)
	h.s.turnedDown(err)
	if err != nil {
		return err
	}
	if fresh {
		h.s.loop.Trigger(ctx, loop.TriggerDeclaration)
	}
	return nil
}

// node is the id of the node this machine is, or "".
func (s *Service) node() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.identity == nil {
		return ""
	}
	return s.identity.NodeID
}

// enrolmentID is the id of the enrolment by which this machine is a node, or "".
func (s *Service) enrolmentID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.identity == nil {
		return ""
	}
	return s.identity.EnrolmentID
}

// turnedDown remembers why the newest declaration of the mesh was not taken,
// for who asks; nil forgets it.
func (s *Service) turnedDown(err error) {
	s.mu.Lock()
	s.refusal = err
	s.mu.Unlock()
}

// LinkUp reconciles: the machine may have changed while nobody told.
func (h linkHandler) LinkUp() {
	h.s.Log.Info("link is up")
	h.s.refreshIdentity()
	h.s.changed()
	h.s.loop.Trigger(h.s.ctx, loop.TriggerReconnect)
}

// refreshIdentity reads what the link made of the identity: a candidate became
// active.
func (s *Service) refreshIdentity() {
	id, err := client.LoadIdentity(s.Layout.HostIdentity())
	if err != nil || id == nil {
		s.Log.Error("identity", "cause", err)
		return
	}
	s.mu.Lock()
	s.identity = id
	s.mu.Unlock()
}

// LinkDown wakes who waits (the link itself has said why); the host goes on holding what it was last told.
func (h linkHandler) LinkDown(err error) {
	h.s.changed()
}

// Revoked says so; the machine keeps what it has.
func (h linkHandler) Revoked(sentence string) {
	h.s.Log.Error("this node was revoked", "cause", sentence)
	h.s.changed()
}

// outbox is the reports the control plane has not seen.
type outbox struct{ s *Service }

// longReport is how many resources a report may tell of in full; a longer one
// leaves out what is unchanged, so that it stays far below what the control
// plane takes.
const longReport = 1000

func (o outbox) Pending() ([]link.Report, error) {
	reports, err := o.s.store.Unsent()
	for i := range reports {
		if len(reports[i].Resources) > longReport {
			reports[i].Resources = slices.DeleteFunc(reports[i].Resources, func(r link.ResourceReport) bool {
				return r.Outcome == declaration.Unchanged
			})
		}
	}
	return reports, err
}

func (o outbox) Sent(id string) error    { return o.s.store.MarkSent(id) }
func (o outbox) Notify() <-chan struct{} { return o.s.outbox }
