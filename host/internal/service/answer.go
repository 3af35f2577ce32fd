package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/loop"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/link/client"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

var _ Host = (*Service)(nil)

// Status implements Host: it looks at each resource now, as Owned does.
func (s *Service) Status(ctx context.Context) (Status, error) {
	st := Status{State: StateHosted, Running: s.served, Version: version.Running(), Busy: s.engine.Busy()}
	if s.served {
		st.Since = s.tally.since()
	}
	w, err := s.store.About()
	if err != nil {
		return st, err
	}
	st.Declaration = w
	records, err := s.store.Records()
	if err != nil {
		return st, err
	}
	st.Owned = len(records)
	if err := s.looked(ctx, records, func(r resource.Record, f finding) {
		if f.there != asApplied {
			st.Off = append(st.Off, Off{Key: r.Key, There: f.there, Differences: f.how})
		}
	}); err != nil {
		return st, err
	}
	s.mu.Lock()
	id, l := s.identity, s.link
	st.Installed = s.other
	st.Last = s.last
	if s.refusal != nil {
		st.Warnings = append(st.Warnings, fmt.Sprintf("the newest declaration of the mesh is not taken: %v", s.refusal))
	}
	if s.unknown != nil {
		st.State = StateDisconnected
		st.Warnings = append(st.Warnings, fmt.Sprintf("this node does not know who it is: %v", s.unknown))
	}
	if s.unread != nil {
		st.Warnings = append(st.Warnings, fmt.Sprintf("the configuration was not read again: %v", s.unread))
	}
	unrecorded, broken := s.unrecorded, s.broken
	s.mu.Unlock()
	st.Failed = s.failed()
	st.Warnings = append(st.Warnings, s.failureWarnings(st.Failed)...)
	if broken != nil {
		st.Warnings = append(st.Warnings, fmt.Sprintf("the last pass could not be made: %v", broken))
	}
	if err := s.store.Writable(); err != nil {
		st.Warnings = append(st.Warnings, fmt.Sprintf("the state of this host cannot be written, and nothing is changed until it can: %v", err))
	} else if unrecorded != nil {
		st.Warnings = append(st.Warnings, fmt.Sprintf("what the last pass did is not in the history: %v", unrecorded))
	}
	if id != nil && id.Stage == client.StageActive {
		st.State, st.Mesh, st.Node, st.NodeID = StateDisconnected, id.Mesh, id.Name, id.NodeID
	}
	if why := s.retiring(w); why != "" {
		st.Warnings = append(st.Warnings, why)
	}
	if l != nil {
		ls := l.State()
		if st.Link = &ls; ls.Connected {
			st.State = StateEnrolled
		}
	}
	if st.Last != nil {
		seen := map[string]bool{}
		for _, r := range records {
			seen[r.Key] = w != nil && r.Declaration == w.Digest
		}
		for _, r := range st.Last.Resources {
			// What is as declared was looked at above; the rest never came to be, or
			// is as an older declaration had it, and of that the look says nothing.
			if r.Outcome.Good() || seen[r.Key] {
				continue
			}
			st.Off = slices.DeleteFunc(st.Off, func(o Off) bool { return o.Key == r.Key })
			st.Off = append(st.Off, Off{Key: r.Key, There: string(r.Outcome), Differences: nonEmpty(r.Error, r.Note)})
		}
	}
	st.Off = s.told(st.Off)
	if st.Content.Blobs, st.Content.Bytes, err = s.content.Size(); err != nil {
		st.Warnings = append(st.Warnings, err.Error())
	}
	if err := s.collector.Err(); err != nil {
		st.Warnings = append(st.Warnings, fmt.Sprintf("content that nobody needs is not thrown away: %v", err))
	}
	for _, aside := range store.SetAside(s.Layout.HostStore()) {
		st.Warnings = append(st.Warnings, fmt.Sprintf("the store was damaged and is set aside as %q: what this host applied before is not known to it any more; remove that file when you have looked at it", aside))
	}
	return st, nil
}

// Owned implements Host: it looks at each resource now.
func (s *Service) Owned(ctx context.Context) ([]Owned, error) {
	records, err := s.store.Records()
	if err != nil {
		return nil, err
	}
	out := []Owned{}
	err = s.looked(ctx, records, func(r resource.Record, f finding) {
		out = append(out, Owned{Key: r.Key, ID: r.ID, Type: r.Type, Mesh: r.Mesh, Epoch: r.Epoch, Generation: r.Generation,
			Adopted: r.Adopted, Since: r.At, There: f.there, Differences: f.how})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func nonEmpty(list ...string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// History implements Host.
func (s *Service) History(context.Context) ([]link.Report, error) { return s.store.Reports() }

// Plan implements Host.
func (s *Service) Plan(ctx context.Context, document []byte) ([]apply.Step, error) {
	return s.engine.Plan(ctx, store.SourceFile, document)
}

// Apply implements Host.
func (s *Service) Apply(ctx context.Context, document []byte) (link.Report, error) {
	if _, err := s.engine.Accept(ctx, store.Wanted{Source: store.SourceFile, Document: document}, false); err != nil {
		return link.Report{}, err
	}
	return s.reconciledTo(ctx, document)
}

// Bundle implements Host: signature, architecture and counter are checked
// again here, since only this side holds the store. What the bundle moves of
// the machine's trust is written before its declaration is accepted: a crash in
// between forgets nothing that was revoked. What a person named for this call
// moves nothing.
func (s *Service) Bundle(ctx context.Context, r BundleRequest) (link.Report, error) {
	document, err := s.admitted(ctx, r)
	if err != nil {
		return link.Report{}, err
	}
	return s.reconciledTo(ctx, document)
}

// admitted takes a bundle's declaration, one bundle at a time: what one moves
// of the machine's trust is there when the next is judged.
func (s *Service) admitted(ctx context.Context, r BundleRequest) ([]byte, error) {
	s.admitting.Lock()
	defer s.admitting.Unlock()
	lease, err := s.content.Lease()
	if err != nil {
		return nil, err
	}
	defer lease.Release()
	state, err := trust.ReadState(s.Layout.TrustState())
	if err != nil {
		return nil, err
	}
	policy, err := Policy(s.Layout, r.Override)
	if err != nil {
		return nil, err
	}
	info, err := bundle.Stored(ctx, s.content, r.Digest, policy)
	if err != nil {
		return nil, err
	}
	if err := Admit(info, state.Counters[info.Name], r.AllowRollback); err != nil {
		return nil, err
	}
	if !r.Override.named() {
		if err := trust.Record(s.Layout.TrustState(), info.Policy, nil); err != nil {
			return nil, err
		}
	}
	document, err := oneDeclaration(info)
	if err != nil {
		return nil, err
	}
	if _, err := s.engine.Review(ctx, store.SourceBundle, "", document); err != nil {
		return nil, err
	}
	if !r.Override.named() {
		if err := trust.Record(s.Layout.TrustState(), nil, map[string]uint64{info.Name: info.Counter}); err != nil {
			return nil, err
		}
	}
	changed, err := s.engine.Accept(ctx, store.Wanted{Source: store.SourceBundle, Bundle: info.Digest.String(), Document: document}, r.AllowRollback)
	if changed {
		// Of another bundle with the same declaration the pass has nothing to say.
		s.collector.Due()
	}
	return document, err
}

// Pass implements Host.
func (s *Service) Pass(ctx context.Context) (link.Report, error) {
	return s.reconciled(ctx, loop.TriggerPerson)
}

// reconciledTo waits for a pass with this document. When another one was
// accepted in between, that is what the pass was about, and not the answer.
func (s *Service) reconciledTo(ctx context.Context, document []byte) (link.Report, error) {
	r, err := s.reconciled(ctx, loop.TriggerDeclaration)
	if err == nil && r.Declaration != digest.FromBytes(document).String() {
		return link.Report{}, fault.Failedf("another declaration was accepted in the meantime, and is in force now").
			Hint("see mesh-host status; apply again if this one shall be")
	}
	return r, err
}

func (s *Service) reconciled(ctx context.Context, trigger string) (link.Report, error) {
	res := s.loop.Pass(ctx, trigger)
	if res.Err != nil {
		if errors.Is(res.Err, context.Canceled) {
			return link.Report{}, fault.Failedf("the pass was interrupted").Hint("it goes on when the host runs again; see mesh-host status")
		}
		return link.Report{}, res.Err
	}
	if res.Report == nil {
		return link.Report{}, fault.Failedf("cannot reconcile: nothing was ever declared for this machine")
	}
	return *res.Report, nil
}
