package apply

import (
	"context"

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

// Plan says what applying the document would do. It changes nothing.
func (e *Engine) Plan(ctx context.Context, source store.Source, document []byte) ([]Step, error) {
	d, err := e.Review(source, e.Mesh(), document)
	if err != nil {
		return nil, err
	}
	p := e.newPass()
	if err := p.know(); err != nil {
		return nil, err
	}
	p.declared, p.restarts.users = d, usersOf(d)
	steps := p.partings(ctx, undeclared(p.records, d))
	var tasks []*task
	for _, i := range d.Order() {
		if t := p.taskOf(&d.Resources[i]); t != nil {
			tasks = append(tasks, t)
		}
	}
	p.look(ctx, tasks, before)
	next := 0
	for _, i := range d.Order() {
		r := &d.Resources[i]
		if _, ok := e.Kinds[r.Type]; !ok {
			steps = append(steps, Step{Key: r.Key(), ID: r.ID, Action: Unsupported, Error: unsupported(r)})
			continue
		}
		s := p.step(tasks[next])
		if s.Action == Create || s.Action == Change {
			s.Diff = diff(ctx, tasks[next])
		}
		steps = append(steps, s)
		next++
	}
	return steps, nil
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
	s.Action = decide(t.resource, t.prior, t.found, p.restarts.pending[t.key], false)
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
