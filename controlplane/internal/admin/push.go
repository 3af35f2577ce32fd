package admin

import (
	"context"
	"errors"
	"io"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// push takes a bundle that comes through the service, because the content store is
// its alone: what root wrote there beside it, it could not read.
func (d *Desk) push(ctx context.Context, q Push, in io.Reader) (Pushed, error) {
	// When the service ends, a bundle that is nearly read still has the grace to be
	// taken; one that is not ends with its body.
	p, err := d.take(context.WithoutCancel(ctx), q, in)
	if err == nil && (p.Changed || p.Published) {
		d.Repository.Changed() // also when it only moved the release root
		d.Collector.Due()
	}
	return p, err
}

// take reads a bundle and records it. The lease holds what came, or was there,
// until the state names it: killed before, there is content that nobody needs,
// never a module without its content.
func (d *Desk) take(ctx context.Context, q Push, in io.Reader) (out Pushed, err error) {
	policy, err := d.policy(q)
	if err != nil {
		return out, err
	}
	lease, err := d.Content.Lease()
	if err != nil {
		return out, err
	}
	defer lease.Release()
	info, err := bundle.Read(ctx, in, bundle.Options{Policy: policy, Store: d.Content, Admit: func(i *bundle.Info) error {
		return d.Office.Store.View(func(tx *state.Tx) error { return module.Admit(tx, record(i), q.AllowRollback) })
	}})
	// What came of a bundle that is not taken is kept for who pushes it again, until
	// something else is due.
	if err != nil {
		return out, err
	}
	if n := len(info.Declarations); n != 1 {
		return out, fault.Refusedf("bundle %q carries %d declarations; a module is one", info.Name, n)
	}
	document, err := info.Declaration(info.Declarations[0].Digest)
	if err != nil {
		return out, err
	}
	offer, err := d.Repository.Offered(info, document)
	if err != nil {
		return out, err
	}
	own := q.Trust == "" && q.Key == ""
	if own {
		// Before the module: a crash in between forgets nothing that was revoked.
		if err := trust.Record(trustState(d.Layout), info.Policy, nil); err != nil {
			return out, err
		}
	}
	has := func(b digest.Digest) bool { return d.Content.Has(b, -1) }
	put := func(tx *state.Tx) error {
		var p *state.Pushed
		var c module.Change
		err := d.guarded(tx, q.Last, "take the bundle", goes, func() (err error) {
			p, c, err = module.Push(tx, d.now(), *record(info), document, q.Placement, q.AllowRollback, has)
			return err
		})
		if err != nil {
			return err
		}
		changed := c.Changed
		out = Pushed{Pushed: *p, Changed: changed, Nodes: c.Nodes, Present: c.Present}
		switch {
		case offer == nil:
		case !own:
			// Nobody else could verify it: `join` trusts what the machine does.
			out.NotPublished = "it was taken on trust that was given for this push alone"
		default:
			if out.Published, out.NotPublished, err = offer.Publish(tx, d.now()); err != nil {
				return err
			}
		}
		if !changed && !out.Published {
			return errUnchanged
		}
		return nil
	}
	err = d.Office.Store.Update(put)
	if errors.Is(err, errUnchanged) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if len(out.Nodes) > 0 {
		d.Wire.Links.Changed(out.Nodes...)
	}
	d.Log.Info("bundle is pushed", "module", out.Name, "version", out.Version, "counter", out.Counter, "architecture", out.Architecture, "bundle", out.Bundle)
	return out, nil
}

// errUnchanged takes a transaction back that has nothing to write.
var errUnchanged = errors.New("nothing changes")

func record(i *bundle.Info) *state.Pushed {
	p := &state.Pushed{
		Name: i.Name, Version: i.Version, Architecture: i.Architecture, Counter: i.Counter, MinimumHost: i.MinimumHost,
		Bundle: i.Digest.String(), Signers: []string{},
	}
	for _, s := range i.Signers {
		p.Signers = append(p.Signers, s.Key)
	}
	return p
}

// SendBundle sends a bundle to the control plane that is running.
func SendBundle(ctx context.Context, c *Client, q Push, in io.Reader) (Pushed, error) {
	p, err := deliver.Send(ctx, c, q, in)
	if door.HowOf(err) == door.Cut {
		return p, fault.Failedf("the control plane ended while it read").Hint("push it again: nothing of it is recorded")
	}
	return p, err
}
