package apply

import (
	"cmp"
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
)

// Step is what a reconcile would do with one resource.
type Step struct {
	Key    string `json:"key"`
	ID     string `json:"id"`
	Action Action `json:"action"`
	// Differences are what would change, one phrase each.
	Differences []string `json:"differences,omitempty"`
	// Diff is the change of a text, as a unified diff.
	Diff string `json:"diff,omitempty"`
	// Note is why it is released or held.
	Note string `json:"note,omitempty"`
	// Error is why it cannot be told, or would fail.
	Error string `json:"error,omitempty"`
}

// Todo reports whether the step does anything.
func (s Step) Todo() bool { return s.Action.Todo() }

// Plan says what applying the document would do. It changes nothing, and takes
// nothing into work. What hangs has an error, and the others their steps.
func (e *Engine) Plan(ctx context.Context, source store.Source, document []byte) ([]Step, error) {
	d, err := e.readFrom(source, e.Mesh(), document)
	if err != nil {
		return nil, err
	}
	p, q := e.newPass(), e.planning()
	if err := p.know(); err != nil {
		return nil, err
	}
	p.declared, p.restarts.users = d, usersOf(d)
	unseen, err := q.review(ctx, d, digest.FromBytes(document).String())
	if err != nil {
		return nil, err
	}
	steps := p.partings(ctx, q, undeclared(p.records, d))
	tasks := make([]*task, len(d.Resources))
	err = each(ctx, len(tasks), func(i int) {
		t := p.taskOf(&d.Resources[i])
		if t == nil {
			return
		}
		if tasks[i] = t; unseen[i] != nil {
			t.err = unseen[i]
			return
		}
		t.found, t.err = q.Check(ctx, t.want, t.prior)
	})
	if err != nil {
		return nil, err
	}
	for _, i := range d.Order() {
		r, t := &d.Resources[i], tasks[i]
		if t == nil {
			steps = append(steps, Step{Key: r.Key(), ID: r.ID, Action: Unsupported, Error: unsupported(r)})
			continue
		}
		s := p.step(t)
		if t.err == nil && (s.Action == Create || s.Action == Change) {
			// That it cannot be shown in time is no error: the differences say it.
			s.Diff, _ = ask(ctx, q, question{t.key, t.typ, "diff", wish(t.want, t.prior)}, func(ctx context.Context) (string, error) { return diff(ctx, t), nil })
		}
		steps = append(steps, s)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return steps, nil
}

// review is Engine.Review. Unseen is why it cannot be told of some, by their index.
func (q *Inquiry) review(ctx context.Context, d *declaration.Declaration, name string) (unseen []error, err error) {
	const what = "review"
	check, err := ask(ctx, q, question{"", declaration.TypeFile, what, name}, func(context.Context) (func(int) error, error) { return q.engine.ownOf(d), nil })
	if err != nil {
		return nil, fmt.Errorf("cannot tell where the links of the declaration lead: %w", err)
	}
	unseen, refused := make([]error, len(d.Resources)), make([]error, len(d.Resources))
	err = each(ctx, len(d.Resources), func(i int) {
		r := &d.Resources[i]
		refused[i], unseen[i] = ask(ctx, q, question{r.Key(), r.Type, what, name}, func(context.Context) (error, error) { return check(i), nil })
	})
	if err != nil {
		return nil, err
	}
	return unseen, cmp.Or(refused...)
}

// untouched says what the pass will say of the error.
func (s *Step) untouched(err error) {
	switch v := untouched(err); v.outcome {
	case declaration.Held:
		s.Action, s.Note = Held, v.note
	case declaration.Unsupported:
		s.Action, s.Error = Unsupported, v.note
	default:
		s.Error = v.err.Error()
	}
}

// step decides as a pass would, and marks what that restarts.
func (p *pass) step(t *task) Step {
	s := Step{Key: t.key, ID: t.resource.ID}
	if t.err != nil {
		s.Action = Change
		s.untouched(t.err)
		return s
	}
	s.Action = decide(t.resource, t.prior, t.found, p.restarts.pending[t.key], false, p.engine.formerly(t))
	s.Differences = t.found.Differences
	switch {
	case s.Action == Conflict:
		s.Error = conflict(t.found).Error()
	case s.Action.acts():
		if err := p.engine.paused(t, false); err != nil {
			s.Error = err.Error()
			break
		}
		p.restarts.changed(t.resource.ID)
	default:
		s.Error = t.found.Failing
	}
	return s
}
