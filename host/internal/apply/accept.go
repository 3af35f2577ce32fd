package apply

import (
	"context"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Accept is the one door for declarations. w says where the document comes
// from and, for the link, its mesh and epoch; name, generation, digest and
// time are filled in here. allowOlder lets one pass that is older than what is
// in force.
//
// It refuses (fault.Refused, nothing touched) a document that is not valid,
// one about the host itself, one from the wrong source, one older than that in
// force. It returns false when the declaration is in force already.
func (e *Engine) Accept(ctx context.Context, w store.Wanted, allowOlder bool) (bool, error) {
	d, err := e.Review(ctx, w.Source, w.Mesh, w.Document)
	if err != nil {
		return false, err
	}
	w.Name, w.Generation = d.Name, d.Generation
	w.Digest = digest.FromBytes(w.Document).String()
	now, err := e.Store.About()
	if err != nil {
		return false, err
	}
	if now != nil {
		if err := checkOrder(*now, w); err != nil && !allowOlder {
			return false, err
		}
		if now.Digest == w.Digest {
			e.read(d, w.Digest)
		}
		if sameOrigin(*now, w) && now.Bundle == w.Bundle && now.Digest == w.Digest {
			return false, nil
		}
	}
	w.At = e.Clock.Now().UTC()
	if err := e.Store.Accept(w); err != nil {
		return true, err
	}
	e.read(d, w.Digest)
	return true, nil
}

// InForce returns the declaration in force and what the store has about it
// (without the document); nil when nothing was ever declared. One that was read
// before is not parsed again.
func (e *Engine) InForce() (*store.Wanted, *declaration.Declaration, error) {
	w, err := e.Store.About()
	if err != nil || w == nil {
		return nil, nil, err
	}
	e.mu.Lock()
	d, of := e.last, e.lastDigest
	e.mu.Unlock()
	if d != nil && of == w.Digest {
		return w, d, nil
	}
	if w, err = e.Store.Wanted(); err != nil || w == nil {
		return nil, nil, err
	}
	if d, err = declaration.Parse(w.Document); err != nil {
		return w, nil, fmt.Errorf("cannot read the declaration in force: %w", err)
	}
	w.Document = nil
	e.read(d, w.Digest)
	return w, d, nil
}

// read remembers the declaration that was read last.
func (e *Engine) read(d *declaration.Declaration, digest string) {
	e.mu.Lock()
	e.last, e.lastDigest = d, digest
	e.mu.Unlock()
}

// glance is how long one resource of a document is looked at before that is accepted.
const glance = 5 * time.Second

// Review says whether the document could be accepted from that source, but for
// its order.
func (e *Engine) Review(ctx context.Context, source store.Source, mesh string, document []byte) (*declaration.Declaration, error) {
	d, err := e.readFrom(source, mesh, document)
	if err != nil {
		return nil, err
	}
	// What does not show itself in time is the pass's to look at.
	if _, err := e.Inquire(glance).review(ctx, d, digest.FromBytes(document).String()); err != nil {
		return nil, err
	}
	return d, nil
}

// readFrom is what of Review asks nothing of the machine.
func (e *Engine) readFrom(source store.Source, mesh string, document []byte) (*declaration.Declaration, error) {
	switch own := e.Mesh(); {
	case source != store.SourceLink && own != "":
		return nil, fault.Refusedf("this machine is a node of mesh %q, which alone declares what it has", own).
			Hint("declare it there: mesh-controller declare")
	case source == store.SourceLink && own == "":
		return nil, fault.Refusedf("a declaration of mesh %q came over the link, but this machine is no node", mesh)
	case source == store.SourceLink && own != mesh:
		return nil, fault.Refusedf("a declaration of mesh %q came over the link of mesh %q", mesh, own)
	}
	return declaration.Parse(document)
}

// checkOrder holds the order (mesh, epoch, generation). Joining a mesh starts
// a new count, also joining the same one anew, and so does a
// declaration of another name on a machine that is in no mesh.
func checkOrder(now, next store.Wanted) error {
	if now.Mesh != next.Mesh || now.Node != next.Node || now.Mesh == "" && now.Name != next.Name {
		return nil
	}
	if now.Enrolment != "" && next.Enrolment != "" && now.Enrolment != next.Enrolment {
		return nil // it left, or lost its identity, and came back as the node it was
	}
	if now.Source == store.SourceRetire && next.Source == store.SourceLink {
		return fault.Refusedf("this node is being retired, and takes nothing of its mesh any more").Hint("mesh-host retire finishes it")
	}
	older := next.Epoch < now.Epoch || next.Epoch == now.Epoch && next.Generation < now.Generation
	if !older {
		return nil
	}
	return fault.Refusedf("declaration %q is older than what was applied (epoch %d generation %d, in force is epoch %d generation %d)",
		next.Name, next.Epoch, next.Generation, now.Epoch, now.Generation)
}

func sameOrigin(a, b store.Wanted) bool {
	return a.Source == b.Source && a.Mesh == b.Mesh && a.Node == b.Node && a.Epoch == b.Epoch
}
