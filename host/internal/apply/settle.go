package apply

import (
	"bytes"
	"context"
	"errors"
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
	var nothing []string
	var ours []resource.Record
	for _, i := range intents {
		var rec *resource.Record
		j := &job{key: i.Key, typ: i.Type}
		p.engine.work(ctx, []*job{j}, 1, func(ctx context.Context, _ int) (err error) {
			rec, err = p.settled(ctx, i)
			return err
		})
		switch {
		case j.err != nil:
			p.engine.Log.Warn("cannot settle what was interrupted", "resource", i.Key, "cause", j.err)
		case rec == nil:
			nothing = append(nothing, i.Key)
		default:
			ours = append(ours, *rec)
		}
	}
	if err := errors.Join(p.engine.Store.Drop(nothing...), p.commit(ours...)); err != nil {
		p.engine.Log.Warn("cannot record what was interrupted", "cause", err)
	}
	return nil
}

// settled looks at what an intent was about. It returns the record of what is
// ours, or nil when nothing came of it.
func (p *pass) settled(ctx context.Context, i store.Intent) (*resource.Record, error) {
	kind, ok := p.engine.Kinds[i.Type]
	if !ok {
		return nil, fmt.Errorf("this version does not know the type %q", i.Type)
	}
	r, err := declaration.FromSpec(i.ID, i.Spec)
	if err != nil {
		return nil, err
	}
	if k, ok := kind.(recoverer); ok {
		if err := k.Recover(ctx, r); err != nil {
			return nil, err
		}
	}
	prior := p.records[i.Key]
	st, err := kind.Check(ctx, resource.Want{Resource: r, Spec: i.Spec}, prior)
	if errors.As(err, new(resource.Held)) {
		return nil, nil // as it was before, then
	}
	if err != nil {
		return nil, err
	}
	untouched := bytes.Equal(st.Found, i.Before)
	if !st.Same && (prior != nil || untouched || st.Strange) {
		// It is ours as it was before, or it was never touched, or somebody else
		// came since.
		return nil, nil
	}
	if st.Same && prior != nil && p.restarts.pending[i.Key] {
		// Whether it was started anew is not seen: it is, once more.
		return nil, nil
	}
	// Done, or begun and then killed: ours, to finish or to take away.
	rec := p.record(r, i.Spec)
	rec.Before = i.Before
	if prior != nil {
		rec.Before, rec.Sequence, rec.Adopted = prior.Before, prior.Sequence, prior.Adopted
	}
	return &rec, nil
}
