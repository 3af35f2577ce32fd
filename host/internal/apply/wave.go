package apply

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"runtime"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
)

// wave brings resources that can be worked on at once to what is declared, each
// step for all of them before the next: look, decide, write down what is about
// to be done, do it, look again, record. What did not work in a crowd is tried
// by itself, because the crowd may have been why.
func (p *pass) wave(ctx context.Context, tasks []*task) {
	p.look(ctx, tasks, before)
	var acting, good []*task
	for _, t := range tasks {
		switch {
		case t.err != nil:
			p.say(t, untouched(t.err))
			continue
		case !p.decided(t):
			continue
		case t.action.acts():
			acting = append(acting, t)
		default:
			good = append(good, t)
		}
	}
	p.act(ctx, acting)
	p.look(ctx, working(acting), after)
	for _, t := range acting {
		if t.err == nil && !t.now.Same {
			t.err = stillNot(t.now)
		}
		switch {
		case t.err == nil:
			good = append(good, t)
		case len(tasks) > 1 && !errors.As(t.err, new(*leftError)) && ctx.Err() == nil:
			p.wave(ctx, []*task{t.anew()})
		default:
			p.letGo(ctx, t)
			p.say(t, failed(p.engine.pause(t)))
		}
	}
	p.own(good)
}

// letGo ends the intent of what failed and was not ours before, when nothing
// came of it: it shall not be there when somebody else changes the thing, which
// the next pass could not tell from what we began.
func (p *pass) letGo(ctx context.Context, t *task) {
	if t.prior != nil || errors.As(t.err, new(*leftError)) {
		return
	}
	now := t.anew()
	p.look(ctx, []*task{now}, before)
	if now.err != nil || now.found.Same || !bytes.Equal(now.found.Found, t.record(p).Before) {
		return
	}
	if err := p.engine.Store.Drop(t.key); err != nil {
		p.engine.Log.Warn("cannot let go of what failed", "resource", t.key, "cause", err)
	}
}

// decided decides on a task that was looked at, and reports whether there is
// anything left to do for it, if only to record it.
func (p *pass) decided(t *task) bool {
	t.action = decide(t.resource, t.prior, t.found, t.restart, p.again, p.engine.formerly(t))
	if t.begun && (t.action == Adopt || t.action == Keep) {
		t.action = Change // by us, a moment ago, and it failed at something
	}
	switch {
	case t.action == Conflict:
		p.say(t, failed(conflict(t.found)))
		return false
	case t.action == Keep:
		p.keep(t)
		return false
	case !t.action.acts():
		return true
	}
	if err := p.engine.paused(t, p.again); err != nil {
		p.say(t, failed(err))
		return false
	}
	for _, source := range t.resource.Sources() {
		if err := p.missing[source]; err != nil {
			p.say(t, failed(err))
			return false
		}
	}
	return true
}

// keep is for what is as declared, and ours: nothing is written that says the
// same as before.
func (p *pass) keep(t *task) {
	if t.found.Failing == "" {
		p.engine.stood(t.key)
	}
	rec := t.record(p)
	if prior := t.prior; rec.Declaration != prior.Declaration || rec.Mesh != prior.Mesh || rec.Epoch != prior.Epoch || !bytes.Equal(rec.Spec, prior.Spec) || rec.ID != prior.ID {
		if bytes.Equal(rec.Spec, prior.Spec) {
			rec.At = prior.At
		}
		p.restamp = append(p.restamp, rec)
	}
	p.say(t, t.kept(declaration.Unchanged))
}

// act writes down what is about to be done, and does it.
func (p *pass) act(ctx context.Context, tasks []*task) {
	if len(tasks) == 0 {
		return
	}
	intents := make([]store.Intent, len(tasks))
	for i, t := range tasks {
		intents[i] = t.intent(p)
	}
	if err := p.engine.Store.Begin(intents...); err != nil {
		for _, t := range tasks {
			t.err = err
		}
		return
	}
	for _, t := range tasks {
		p.restarts.changed(t.resource.ID)
	}
	kind := at(tasks[0].kind, len(tasks))
	p.engine.work(ctx, jobs(tasks), len(tasks), func(ctx context.Context, i int) error {
		t, want := tasks[i], tasks[i].want
		want.Restart = t.restart || t.action == Restart
		t.tried = true
		return kind.Apply(ctx, want, t.prior, t.found)
	})
}

// at is the kind for n calls at the same time.
func at(k resource.Kind, n int) resource.Kind {
	if t, ok := k.(together); ok && n > 1 {
		return t.Together(n)
	}
	return k
}

// A surveyed is a kind that looks at the machine once for many calls of Check
// and Review, and is the quicker for it.
type surveyed interface {
	// Surveyed returns the kind for calls that are made soon after each other.
	Surveyed() resource.Kind
}

// Surveyed are the kinds for looking at many resources, one after the other.
func (e *Engine) Surveyed() map[declaration.Type]resource.Kind {
	out := maps.Clone(e.Kinds)
	for t, k := range out {
		if s, ok := k.(surveyed); ok {
			out[t] = s.Surveyed()
		}
	}
	return out
}

// The times of a look.
const (
	before = iota
	after
)

// look asks the kinds what is there, of several resources at the same time.
func (p *pass) look(ctx context.Context, tasks []*task, when int) {
	if p.eyes == nil {
		p.eyes = p.engine.Surveyed()
	}
	p.engine.work(ctx, jobs(tasks), lookers(), func(ctx context.Context, i int) (err error) {
		t := tasks[i]
		if when == before {
			t.found, err = p.eyes[t.typ].Check(ctx, t.want, t.prior)
			return err
		}
		owner := t.record(p)
		t.now, err = p.eyes[t.typ].Check(ctx, t.want, &owner)
		return err
	})
}

// lookers is how many resources are looked at at the same time.
func lookers() int { return max(2, runtime.GOMAXPROCS(0)) }

func jobs(tasks []*task) []*job {
	out := make([]*job, len(tasks))
	for i, t := range tasks {
		out[i] = &t.job
	}
	return out
}

// working are those that nothing is wrong with so far.
func working(tasks []*task) []*task {
	var out []*task
	for _, t := range tasks {
		if t.err == nil {
			out = append(out, t)
		}
	}
	return out
}

// own records what is as declared now, and says so.
func (p *pass) own(tasks []*task) {
	if len(tasks) == 0 {
		return
	}
	records := make([]resource.Record, len(tasks))
	for i, t := range tasks {
		records[i] = t.record(p)
		records[i].Adopted = records[i].Adopted || t.action == Adopt && !p.engine.formerly(t)
	}
	err := p.commit(records...)
	for _, t := range tasks {
		switch {
		case err != nil:
			p.say(t, failed(err))
		case t.action == Adopt:
			p.say(t, t.kept(declaration.Adopted))
		default:
			p.engine.worked(t.key)
			p.say(t, t.applied())
		}
	}
}

func (p *pass) say(t *task, v verdict) { p.tell(t.key, t.resource.ID, v) }
