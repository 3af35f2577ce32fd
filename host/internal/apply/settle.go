package apply

import (
	"bytes"
	"context"
	"fmt"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
)

// recoverer is what a kind implements that may leave something half made
// behind when it is killed, such as a temporary file.
type recoverer interface {
	Recover(ctx context.Context, r declaration.Resource) error
}

// settle ends the intents that an earlier run left open, by looking at the
// machine: was the thing done, begun, or never touched? Only then is it known
// whether the host owns it. An intent that cannot be settled stays open.
func (p *pass) settle(ctx context.Context) error {
	intents, err := p.engine.Store.Intents()
	if err != nil {
		return err
	}
	for _, i := range intents {
		if err := p.settleOne(ctx, i); err != nil {
			p.engine.Log.Warn("cannot settle what was interrupted", "resource", i.Key, "cause", err)
		}
	}
	return nil
}

func (p *pass) settleOne(ctx context.Context, i store.Intent) error {
	ctx, done := p.engine.on(ctx, i.Key)
	defer done()
	kind, ok := p.engine.Kinds[i.Type]
	if !ok {
		return fmt.Errorf("this version does not know the type %q", i.Type)
	}
	r, err := declaration.FromSpec(i.ID, i.Spec)
	if err != nil {
		return err
	}
	if k, ok := kind.(recoverer); ok {
		if err := k.Recover(ctx, r); err != nil {
			return err
		}
	}
	prior := p.records[i.Key]
	st, err := kind.Check(ctx, resource.Want{Resource: r, Spec: i.Spec, Restart: p.restarts[i.Key]}, prior)
	if err != nil {
		return err
	}
	untouched := bytes.Equal(st.Found, i.Before)
	if !st.Same && (prior != nil || untouched) {
		// Either it is ours as it was before, or it was never touched.
		return p.engine.Store.Drop(i.Key)
	}
	// Done, or begun and then killed: ours, to finish or to take away.
	rec := p.record(r, i.Spec)
	rec.Before = i.Before
	if prior != nil {
		rec.Before, rec.Sequence, rec.Adopted = prior.Before, prior.Sequence, prior.Adopted
	}
	return p.commit(rec)
}
