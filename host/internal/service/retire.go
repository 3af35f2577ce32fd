package service

import (
	"context"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/link/client"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// Retiring a machine is a walk that is safe to be killed on, and to be begun
// again:
//
//	the last declaration is in force: nothing  (one transaction; from here on
//	                                            nothing of the mesh is taken)
//	a pass takes away what the host owns       (or lets go of it)
//	the control plane is told, if it can be    (bounded; it may be gone for ever)
//	the identity is removed                    (the machine is hosted again)
//
// A host that starts in between goes on taking away; it never applies again what
// was declared before. What cannot be taken away keeps the identity, so that the
// mesh still knows of a machine that holds its things.

// lastDeclaration is what a retired machine shall have.
const lastDeclaration = `{"schema": 1, "name": "retired", "resources": []}`

// triggerRetire is the trigger of the last pass, as the control plane hears it.
const triggerRetire = "retire"

// How long the control plane is waited for to hear the last report: while it
// answers, and while it is not known whether it does.
const (
	tellTime = 10 * time.Second
	seekTime = 3 * time.Second
)

// RetireRequest says how a machine is retired.
type RetireRequest struct {
	// DryRun only says what would go.
	DryRun bool `json:"dry_run,omitempty"`
	// KeepResources leaves what the host owns on the machine, unmanaged.
	KeepResources bool `json:"keep_resources,omitempty"`
	// Force forgets the identity although something could not be taken away.
	Force bool `json:"force,omitempty"`
}

// Retired says what became of it.
type Retired struct {
	// Mesh and Node are those that were left, or are to be; "" for a machine that
	// was in none.
	Mesh string `json:"mesh,omitempty"`
	Node string `json:"node,omitempty"`
	// Steps are what goes, of a dry run.
	Steps []apply.Step `json:"steps,omitempty"`
	// Resources are what the last pass did.
	Resources []link.ResourceReport `json:"resources,omitempty"`
	// Left are the keys of what the host still owns.
	Left []string `json:"left,omitempty"`
	// Told: the control plane has the last report.
	Told bool `json:"told"`
	// Forgotten: the machine has no identity any more.
	Forgotten bool `json:"forgotten"`
}

// Retire implements Host.
func (s *Service) Retire(ctx context.Context, r RetireRequest) (Retired, error) {
	s.enrolling.Lock()
	defer s.enrolling.Unlock()
	out, revoked := s.leaving()
	if r.DryRun {
		var err error
		out.Steps, err = s.partings(ctx, r.KeepResources)
		return out, err
	}
	s.endLink()
	defer s.holdAgain()
	if err := s.declareLast(r.KeepResources, false); err != nil {
		return out, err
	}
	report, err := s.reconciled(ctx, triggerRetire)
	if err != nil {
		return out, err
	}
	out.Resources = report.Resources
	records, err := s.store.Records()
	if err != nil {
		return out, err
	}
	for _, x := range records {
		out.Left = append(out.Left, x.Key)
	}
	goes := len(out.Left) == 0 || r.Force
	out.Told = out.Mesh != "" && !revoked && s.tell(ctx, s.lastLink(), goes, out.Left)
	if !goes {
		return out, nil
	}
	s.endLink()
	if err := s.forgetIdentity(); err != nil {
		return out, err
	}
	out.Forgotten = true
	return out, nil
}

// leaving says which mesh would be left.
func (s *Service) leaving() (out Retired, revoked bool) {
	out.Mesh = s.mesh()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.identity != nil && out.Mesh != "" {
		out.Node, revoked = s.identity.Name, s.identity.Revoked != ""
	}
	return out, revoked || s.identity == nil
}

// partings are the steps by which all that is owned goes.
func (s *Service) partings(ctx context.Context, keep bool) ([]apply.Step, error) {
	source := store.SourceFile
	if s.mesh() != "" {
		source = store.SourceLink
	}
	steps, err := s.engine.Plan(ctx, source, []byte(lastDeclaration))
	for i := range steps {
		if keep {
			steps[i].Action, steps[i].Note, steps[i].Error = apply.Release, "left as it is, unmanaged", ""
		}
	}
	return steps, err
}

// declareLast puts the last declaration in force. One that is in force already is
// the same one again, but for what it leaves.
func (s *Service) declareLast(leave, dismissed bool) error {
	now, err := s.store.About()
	if err != nil {
		return err
	}
	d, err := declaration.Parse([]byte(lastDeclaration))
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	last := store.Wanted{
		Source: store.SourceRetire, Mesh: s.mesh(), Node: s.node(), Enrolment: s.enrolmentID(), Name: d.Name, Generation: d.Generation,
		Digest: digest.FromString(lastDeclaration).String(), At: s.Clock.Now().UTC(), Leave: leave, Dismissed: dismissed,
		Document: []byte(lastDeclaration),
	}
	if now != nil {
		if last.Mesh == now.Mesh {
			last.Epoch = now.Epoch
		}
		if now.Source == last.Source && now.Mesh == last.Mesh && now.Node == last.Node && now.Enrolment == last.Enrolment && now.Leave == leave && (now.Dismissed || !dismissed) {
			return nil
		}
	}
	return s.store.Accept(last)
}

// endLink ends what is said to a control plane: what it brought before has been
// taken when this returns, and nothing more comes.
func (s *Service) endLink() {
	s.asking.end()
	s.holding.end()
	s.mu.Lock()
	s.link = nil
	s.mu.Unlock()
}

// holdAgain holds the link as before, if there still is one.
func (s *Service) holdAgain() {
	s.endLink()
	s.hold()
}

// lastLink holds the link until endLink, whether or not a service runs.
func (s *Service) lastLink() *client.Client {
	l := s.newLink(lastOutbox{outbox{s}})
	s.mu.Lock()
	s.link = l
	s.mu.Unlock()
	s.holding.begin(s.ctx, &s.running, func(ctx context.Context) {
		if err := l.Run(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("link", "cause", err)
		}
	})
	return l
}

// lastOutbox wakes who waits for a report to be sent.
type lastOutbox struct{ outbox }

func (o lastOutbox) Sent(id string) error {
	err := o.outbox.Sent(id)
	o.s.changed()
	return err
}

// tell waits until the control plane has all reports, says that this node leaves now
// if it does, and reports whether the control plane knows.
func (s *Service) tell(ctx context.Context, l *client.Client, leaves bool, left []string) bool {
	seek, stop := context.WithTimeout(ctx, seekTime)
	defer stop()
	if !s.await(seek, func() bool { return l.State().Connected }) {
		return false
	}
	told, stop := context.WithTimeout(ctx, tellTime)
	defer stop()
	if !s.await(told, s.allSent) {
		return false
	}
	if !leaves {
		return true
	}
	err := l.Leave(told, left)
	if link.CodeOf(err) == link.Refused {
		return true // a control plane of before there was such a word has the last report
	}
	if err != nil {
		s.Log.Warn("the control plane did not hear that this node left", "cause", err)
	}
	return err == nil
}

func (s *Service) allSent() bool {
	left, err := s.store.Unsent()
	return err == nil && len(left) == 0
}

// forgetIdentity makes the machine hosted again. What its mesh was not told is
// no other mesh's business.
func (s *Service) forgetIdentity() error {
	left, err := s.store.Unsent()
	if err != nil {
		return err
	}
	for _, r := range left {
		if err := s.store.MarkSent(r.ID); err != nil {
			return err
		}
	}
	// What this node was, and was to become, is no other mesh's business either.
	if err := s.former.forget(); err != nil {
		return fmt.Errorf("cannot forget what this node owned: %w", err)
	}
	for _, path := range []string{s.newIdentityPath(), s.Layout.HostIdentity()} {
		if err := durable.Remove(path); err != nil {
			return fmt.Errorf("cannot forget the identity: %w", err)
		}
	}
	s.mu.Lock()
	s.identity, s.unknown, s.refusal = nil, nil, nil
	s.mu.Unlock()
	s.changed()
	return nil
}

// retiring says, for status, that a retirement was begun and not finished, or "".
func (s *Service) retiring(w *store.Wanted) string {
	if w == nil || w.Source != store.SourceRetire || s.mesh() == "" || w.Node != s.node() || w.Enrolment != s.enrolmentID() {
		return ""
	}
	if w.Dismissed {
		return "the mesh retired this node: it leaves when what it owns is gone"
	}
	return "this node is being retired and takes nothing of its mesh any more: mesh-host retire finishes it"
}
