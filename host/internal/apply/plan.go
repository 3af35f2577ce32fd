package apply

import (
	"context"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
)

// Step is what a reconcile would do with one resource.
type Step struct {
	Key string `json:"key"`
	ID  string `json:"id"`
	// Action is "keep", "adopt", "create", "change", "restart", "remove",
	// "release", "conflict" or "unsupported".
	Action string `json:"action"`
	// Differences are what would change, one phrase each.
	Differences []string `json:"differences,omitempty"`
	// Error is why it cannot be told.
	Error string `json:"error,omitempty"`
}

// Todo reports whether the step does anything.
func (s Step) Todo() bool { return s.Action != "keep" && s.Action != "unsupported" }

// Plan says what applying the document would do. It changes nothing.
func (e *Engine) Plan(ctx context.Context, source store.Source, document []byte) ([]Step, error) {
	d, err := e.Review(source, e.Mesh(), document)
	if err != nil {
		return nil, err
	}
	list, err := e.Store.Records()
	if err != nil {
		return nil, err
	}
	restarts, err := e.Store.Restarts()
	if err != nil {
		return nil, err
	}
	records, declared := map[string]*resource.Record{}, map[string]bool{}
	for i := range list {
		records[list[i].Key] = &list[i]
	}
	for i := range d.Resources {
		declared[d.Resources[i].Key()] = true
	}
	var steps []Step
	for i := len(list) - 1; i >= 0; i-- {
		if !declared[list[i].Key] {
			action := "remove"
			if e.isHostBinary(list[i].Key) {
				action = "release"
			}
			steps = append(steps, Step{Key: list[i].Key, ID: list[i].ID, Action: action})
		}
	}
	for _, i := range d.Order() {
		r := &d.Resources[i]
		s := e.planOne(ctx, r, records[r.Key()])
		if s.Action == "keep" && restarts[r.Key()] {
			s.Action = "restart"
		}
		// What changes restarts what names it, in the same pass.
		if s.Action == "create" || s.Action == "change" {
			for j := range d.Resources {
				if slices.Contains(d.Resources[j].RestartOn, r.ID) {
					restarts[d.Resources[j].Key()] = true
				}
			}
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func (e *Engine) planOne(ctx context.Context, r *declaration.Resource, prior *resource.Record) Step {
	s := Step{Key: r.Key(), ID: r.ID}
	kind, ok := e.Kinds[r.Type]
	if !ok {
		s.Action, s.Error = "unsupported", unsupported(r)
		return s
	}
	st, err := kind.Check(ctx, resource.Want{Resource: *r, Spec: r.Spec()}, prior)
	s.Differences = st.Differences
	switch {
	case err != nil:
		s.Action, s.Error = "change", err.Error()
	case st.Same && prior == nil:
		s.Action = "adopt"
	case st.Same:
		s.Action, s.Error = "keep", st.Failing
	case st.Foreign && prior == nil && !r.TakeOver:
		s.Action, s.Error = "conflict", "exists and is not ours ("+strings.Join(st.Differences, ", ")+")"
	case !st.Exists:
		s.Action = "create"
	default:
		s.Action = "change"
	}
	return s
}
