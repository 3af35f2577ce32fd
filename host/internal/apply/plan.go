package apply

import (
	"context"
	"errors"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
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
	var steps []Step
	for _, r := range undeclared(p.records, d) {
		steps = append(steps, Step{Key: r.Key, ID: r.ID, Action: e.removal(r)})
	}
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

// step decides as a pass would, and marks what that restarts.
func (p *pass) step(t *task) Step {
	s := Step{Key: t.key, ID: t.resource.ID}
	if t.err != nil {
		s.Action, s.Error = Change, t.err.Error()
		if errors.As(t.err, new(resource.Unsupported)) {
			s.Action = Unsupported
		}
		if errors.As(t.err, new(resource.Held)) {
			s.Action = Held
		}
		return s
	}
	s.Action = decide(t.resource, t.prior, t.found, p.restarts.pending[t.key], false)
	s.Differences = t.found.Differences
	switch {
	case s.Action == Conflict:
		s.Error = conflict(t.found).Error()
	case s.Action.acts():
		p.restarts.changed(t.resource.ID)
	default:
		s.Error = t.found.Failing
	}
	return s
}
