package admin

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/address"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Desk answers the verbs.
type Desk struct {
	Office  *admission.Office
	Content *content.Store
	Wire    *wire.Server
	Served  address.Served
	Log     *slog.Logger
}

// Handler returns the desk's HTTP side.
func (d *Desk) Handler() http.Handler {
	mux := http.NewServeMux()
	TokenCreate.handle(mux, d.tokenCreate)
	TokenList.handle(mux, func(context.Context, None) ([]admission.TokenStatus, error) { return d.Office.Tokens() })
	TokenRevoke.handle(mux, d.tokenRevoke)
	AddressAdd.handle(mux, d.addressAdd)
	AddressRemove.handle(mux, d.addressRemove)
	AddressList.handle(mux, func(context.Context, None) (Addresses, error) { return d.addresses() })
	Nodes.handle(mux, d.nodes)
	Show.handle(mux, d.show)
	Declare.handle(mux, d.declare)
	Undeclare.handle(mux, d.undeclare)
	Approve.handle(mux, d.approve)
	Revoke.handle(mux, d.revoke)
	Events.handle(mux, d.events)
	GetStatus.handle(mux, d.status)
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

func (d *Desk) tokenRevoke(_ context.Context, q Ref) (None, error) {
	err := d.Office.RevokeToken(q.Ref)
	if err == nil {
		d.Log.Info("token is revoked", "token", q.Ref)
	}
	return None{}, err
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
			return fault.Refusedf("cannot add address %q: there may be %d", a, link.MaxAddresses)
		}
		if !changed {
			return nil
		}
		return tx.AddEvent(&state.Event{At: d.Office.Clock.Now().UTC(), Kind: kind, Sentence: "address " + a})
	})
	if err != nil {
		return Addresses{}, err
	}
	if changed {
		d.Wire.Links.AllChanged()
		d.Log.Info("the list of addresses is changed", "what", kind, "address", a)
	}
	return d.addresses()
}

func (d *Desk) declare(_ context.Context, q Declaration) (c module.Change, err error) {
	has := func(blob digest.Digest) bool { return d.Content.Has(blob, -1) }
	err = d.Office.Store.Update(func(tx *state.Tx) error {
		c, err = module.Declare(tx, d.Office.Clock.Now().UTC(), q.Name, q.Document, q.Placement, has)
		return err
	})
	d.tell("module is declared", q.Name, c, err)
	return c, err
}

// tell passes a change on to the links of the nodes it is about.
func (d *Desk) tell(what, name string, c module.Change, err error) {
	if err != nil || !c.Changed {
		return
	}
	d.Wire.Links.Changed(c.Nodes...)
	d.Log.Info(what, "module", name, "nodes", len(c.Nodes))
}

func (d *Desk) undeclare(_ context.Context, q ModuleRef) (c module.Change, err error) {
	err = d.Office.Store.Update(func(tx *state.Tx) error {
		c, err = module.Undeclare(tx, d.Office.Clock.Now().UTC(), q.Name)
		return err
	})
	d.tell("module is undeclared", q.Name, c, err)
	return c, err
}

func (d *Desk) approve(_ context.Context, q Approval) (Node, error) {
	n, err := d.Office.Approve(q.Ref, q.Name, q.Tags)
	if err != nil {
		return Node{}, err
	}
	d.Log.Info("node is approved", "node", n.Name)
	return d.line(n, n.Decision.At), nil
}

func (d *Desk) revoke(_ context.Context, q Ref) (Node, error) {
	n, err := d.Office.Revoke(q.Ref)
	if err != nil {
		return Node{}, err
	}
	d.Wire.Links.Revoke(n.ID)
	d.Log.Info("node is revoked", "node", n.Name)
	return d.line(n, n.Decision.At), nil
}
