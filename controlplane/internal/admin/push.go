package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A push is the one verb with more than a message: the bundle comes as the body,
// as it is read, and the question in the address. The bytes go through the
// service because the content store is its alone: what root wrote there beside
// it, it could not read.
const pushPath = "/v1/push"

func (d *Desk) push(w http.ResponseWriter, r *http.Request) {
	var q Push
	if err := json.Unmarshal([]byte(r.URL.Query().Get("q")), &q); err != nil {
		refuse(w, fault.Usagef("cannot read the question: %w", err))
		return
	}
	p, err := d.take(r.Context(), q, r.Body)
	if err != nil {
		refuse(w, err)
		return
	}
	if p.Changed {
		d.Collector.Due()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p)
}

// take reads a bundle and records it. The lease holds what came, or was there,
// until the state names it: killed before, there is content that nobody needs,
// never a module without its content.
func (d *Desk) take(ctx context.Context, q Push, in io.Reader) (out Pushed, err error) {
	lease, err := d.Content.Lease()
	if err != nil {
		return out, err
	}
	defer lease.Release()
	policy, err := d.policy(q)
	if err != nil {
		return out, err
	}
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
	if q.Trust == "" && q.Key == "" {
		// Before the module: a crash in between forgets nothing that was revoked.
		if err := trust.Record(trustState(d.Layout), info.Policy, nil); err != nil {
			return out, err
		}
	}
	has := func(b digest.Digest) bool { return d.Content.Has(b, -1) }
	put := func(tx *state.Tx) error {
		p, changed, err := module.Push(tx, d.now(), *record(info), document, q.AllowRollback, has)
		if err != nil {
			return err
		}
		out = Pushed{*p, changed}
		if !changed {
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

// A source is a body that remembers why it could not be read: that is no fault
// of the control plane's. An answer may come while it is being read.
type source struct {
	in  io.Reader
	err atomic.Pointer[error]
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.in.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err.Store(&err)
	}
	return n, err
}

// SendBundle sends a bundle to the control plane that is running. One that
// restarts is waited for before the first byte, and not any more after that:
// what came by a pipe is gone with it.
func SendBundle(ctx context.Context, c *Client, q Push, in io.Reader) (Pushed, error) {
	var p Pushed
	patience := c.Patience
	if !c.settled() {
		patience = 0 // none ever ran here
	}
	if err := c.Wait(ctx, patience); err != nil {
		return p, err
	}
	b, err := json.Marshal(q)
	if err != nil {
		return p, err
	}
	body := &source{in: in}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://controller"+pushPath+"?q="+url.QueryEscape(string(b)), io.NopCloser(body))
	if err != nil {
		return p, err
	}
	res, err := c.http.Do(r)
	if err != nil {
		switch unread := body.err.Load(); {
		case ctx.Err() != nil:
			return p, ctx.Err()
		case unread != nil:
			return p, *unread
		}
		return p, fault.Failedf("the control plane ended while it read").Hint("push it again: nothing of it is recorded")
	}
	defer res.Body.Close()
	err = answer(res, &p)
	return p, err
}
