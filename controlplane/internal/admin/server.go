package admin

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/address"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/repository"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A Desk answers the verbs.
type Desk struct {
	Office  *admission.Office
	Content *content.Store
	// Collector throws away content that nobody needs any more.
	Collector *content.Collector
	// Layout says what this control plane trusts.
	Layout layout.Layout
	Wire   *wire.Server
	Served address.Served
	// Repository is what new machines are served, RepositoryServed where.
	Repository       *repository.Server
	RepositoryServed address.Served
	// Self is how a declaration speaks of this control plane.
	Self module.Program
	// Reopen has the control plane begin anew with what a restore laid down.
	Reopen func()
	Log    *slog.Logger
}

// Handler returns the desk's HTTP side.
func (d *Desk) Handler() http.Handler {
	mux := http.NewServeMux()
	TokenCreate.Handle(mux, d.tokenCreate)
	TokenList.Handle(mux, func(context.Context, None) ([]admission.TokenStatus, error) { return d.Office.Tokens() })
	TokenRevoke.Handle(mux, d.tokenRevoke)
	AddressAdd.Handle(mux, d.addressAdd)
	AddressRemove.Handle(mux, d.addressRemove)
	AddressList.Handle(mux, func(context.Context, None) (Addresses, error) { return d.addresses() })
	Nodes.Handle(mux, d.nodes)
	Show.Handle(mux, d.show)
	Declare.Handle(mux, d.declare)
	Undeclare.Handle(mux, d.undeclare)
	Approve.Handle(mux, d.approve)
	Refuse.Handle(mux, d.refuse)
	Revoke.Handle(mux, d.revoke)
	Retire.Handle(mux, d.retire)
	RotateRoot.Handle(mux, d.rotateRoot)
	Events.Handle(mux, d.events)
	GetStatus.Handle(mux, d.status)
	Join.Handle(mux, d.join)
	deliver.Handle(mux, d.push)
	draw.Handle(mux, d.backup)
	TakeUp.Handle(mux, d.takeUp)
	return mux
}

func (d *Desk) tokenCreate(_ context.Context, q admission.TokenOptions) (TokenMade, error) {
	as, err := d.addresses()
	if err != nil {
		return TokenMade{}, err
	}
	for _, a := range as.Addresses {
		if err := d.Served.Check(a); err != nil {
			return TokenMade{}, err
		}
	}
	t, err := d.Office.CreateToken(q, as.Addresses)
	if err != nil {
		return TokenMade{}, err
	}
	d.Log.Info("token is made", "token", t.ID, "uses", q.Uses, "until", t.Expires)
	return TokenMade{Token: t.Text(), ID: t.ID, Expires: t.Expires, Uses: q.Uses, Addresses: as.Addresses}, nil
}

func (d *Desk) tokenRevoke(_ context.Context, q Ref) (TokenRevoked, error) {
	at, already, err := d.Office.RevokeToken(q.Ref)
	if err == nil && !already {
		d.Log.Info("token is revoked", "token", q.Ref)
	}
	return TokenRevoked{ID: q.Ref, Revoked: at, Already: already}, err
}

func (d *Desk) addresses() (a Addresses, err error) {
	err = d.Office.Store.View(func(tx *state.Tx) error {
		a.Addresses = tx.Addresses()
		return nil
	})
	if a.Given = len(a.Addresses) > 0; err == nil && !a.Given {
		a.Addresses, err = d.Served.Find()
	}
	return a, err
}

func (d *Desk) addressAdd(_ context.Context, q Address) (Addresses, error) {
	if err := d.Served.Check(q.Address); err != nil {
		return Addresses{}, err
	}
	return d.change("address.added", q.Address, (*state.Tx).AddAddress)
}

func (d *Desk) addressRemove(_ context.Context, q Address) (Addresses, error) {
	return d.change("address.removed", q.Address, (*state.Tx).RemoveAddress)
}

// change adds or removes an address and writes that down.
func (d *Desk) change(kind, a string, do func(*state.Tx, string) (bool, error)) (Addresses, error) {
	changed := false
	err := d.Office.Store.Update(func(tx *state.Tx) (err error) {
		if changed, err = do(tx, a); err != nil {
			return err
		}
		if !changed && kind == "address.removed" {
			return fault.Refusedf("cannot remove address %q: it is not in the list", a).
				Hint("run `mesh-controller address list`")
		}
		if n := len(tx.Addresses()); n > link.MaxAddresses {
			return fault.Refusedf("cannot add address %q: there may be %d, and there are", a, link.MaxAddresses).
				Hint("take one out with `mesh-controller address remove HOST:PORT`")
		}
		if !changed {
			return nil
		}
		return tx.AddEvent(&state.Event{At: d.now(), Kind: kind, Sentence: "address " + a})
	})
	if err != nil {
		return Addresses{}, err
	}
	if changed {
		d.Wire.Links.AllChanged()
		d.Log.Info("the list of addresses is changed", "what", kind, "address", a)
	}
	as, err := d.addresses()
	as.Changed = changed
	return as, err
}

// goes is what becomes of resources that are declared no more, or otherwise.
const goes = "would be removed from it or changed"

func (d *Desk) declare(_ context.Context, q Declaration) (c module.Change, err error) {
	has := func(blob digest.Digest) bool { return d.Content.Has(blob, -1) }
	transact, declare := d.Office.Store.Update, module.Declare
	if q.DryRun {
		transact, declare = d.Office.Store.Try, module.Plan
	}
	lease, err := d.Content.Lease() // what is there stays until the module names it
	if err != nil {
		return c, err
	}
	defer lease.Release()
	err = transact(func(tx *state.Tx) error {
		return d.guarded(tx, q.Last, fmt.Sprintf("declare module %q", q.Name), goes, func() (err error) {
			c, err = declare(tx, d.now(), module.Wish{Name: q.Name, Document: q.Document, Placement: q.Placement}, has)
			return err
		})
	})
	lease.Release()
	if err == nil && !q.DryRun {
		d.tell("module is declared", q.Name, c)
	}
	return c, err
}

// tell passes a change on to the links of the nodes it is about.
func (d *Desk) tell(what, name string, c module.Change) {
	if !c.Changed {
		return
	}
	d.Collector.Due()
	d.Wire.Links.Changed(c.Nodes...)
	d.Log.Info(what, "module", name, "nodes", len(c.Nodes))
}

func (d *Desk) undeclare(_ context.Context, q ModuleRef) (c module.Change, err error) {
	err = d.Office.Store.Update(func(tx *state.Tx) error {
		return d.guarded(tx, q.Last, fmt.Sprintf("undeclare module %q", q.Name), goes, func() (err error) {
			c, err = module.Undeclare(tx, d.now(), q.Name)
			return err
		})
	})
	if err == nil {
		d.tell("module is undeclared", q.Name, c)
	}
	return c, err
}

func (d *Desk) approve(_ context.Context, q Approval) (Node, error) {
	n, err := d.Office.Approve(q.Ref, q.Name, q.Tags, q.Rejoin)
	if err != nil {
		return Node{}, err
	}
	if q.Rejoin != "" {
		d.Wire.Links.Revoke(n.ID) // of the machine that had its key
	}
	d.Wire.Links.Changed(n.ID) // one that was held is told
	d.Log.Info("node is approved", "node", n.ID, "name", n.Name)
	return d.node(n.ID)
}

func (d *Desk) revoke(_ context.Context, q Leaving) (out NodeRevoked, err error) {
	var n *state.Node
	err = d.Office.Store.Update(func(tx *state.Tx) error {
		const fate = "could be changed by nobody any more"
		return d.guarded(tx, q.Last, fmt.Sprintf("revoke node %q", q.Ref), fate, func() (err error) {
			n, out.Already, err = d.Office.Revoke(tx, q.Ref)
			return err
		})
	})
	if err != nil {
		return NodeRevoked{}, err
	}
	d.Wire.Links.Revoke(n.ID)
	d.Collector.Due()
	if !out.Already {
		d.Log.Info("node is revoked", "node", n.Name)
	}
	out.Node, err = d.node(n.ID)
	return out, err
}

func (d *Desk) retire(_ context.Context, q Retirement) (out NodeRetiring, err error) {
	transact := d.Office.Store.Update
	if q.DryRun {
		transact = d.Office.Store.Try
	}
	var n *state.Node
	err = transact(func(tx *state.Tx) error {
		return d.guarded(tx, q.Last, fmt.Sprintf("retire node %q", q.Ref), goes, func() (err error) {
			if n, out.Already, err = d.Office.Retire(tx, q.Ref, q.KeepResources); err != nil {
				return err
			}
			inv, err := tx.Inventory(n.ID)
			if inv != nil {
				out.Owns = inv.Owned
			}
			return err
		})
	})
	if err != nil {
		return NodeRetiring{}, err
	}
	if !q.DryRun {
		d.Wire.Links.Changed(n.ID)
		d.Collector.Due()
		if !out.Already {
			d.Log.Info("node is to be retired", "node", n.Name)
		}
	}
	out.Node, err = d.node(n.ID)
	return out, err
}

// rotateRoot makes a new mesh root; it counts when the state is opened anew, which is
// done at once.
func (d *Desk) rotateRoot(context.Context, None) (RootRotated, error) {
	pin, err := d.Office.RotateRoot()
	if err != nil {
		return RootRotated{}, err
	}
	d.Log.Info("the mesh has a new root", "pin", pin)
	d.Reopen()
	return RootRotated{Before: d.Office.Authority.Pin(), Pin: pin}, nil
}

func (d *Desk) now() time.Time { return d.Office.Clock.Now().UTC() }
