package service

import (
	"context"
	"errors"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// patience is how long one resource is looked at for an answer.
const patience = 5 * time.Second

// A finding is what a look at an owned resource says: one of the words, and more.
type finding struct {
	there string
	how   []string
}

// The words for what a look at an owned resource finds.
const (
	asApplied = "as applied"
	drifted   = "drifted"
	failing   = "failing"
	unknown   = "unknown"
)

// looked looks at each of the records, and gives tell what it found, until ctx
// ends.
func (s *Service) looked(ctx context.Context, records []resource.Record, tell func(resource.Record, finding)) error {
	q := s.engine.Inquire(patience)
	for _, r := range records {
		f := look(ctx, q, r)
		if err := ctx.Err(); err != nil {
			return err
		}
		tell(r, f)
	}
	return nil
}

func look(ctx context.Context, q *apply.Inquiry, r resource.Record) finding {
	want, err := declaration.FromSpec(r.ID, r.Spec)
	if err != nil {
		return finding{unknown, []string{err.Error()}}
	}
	st, err := q.Check(ctx, resource.Want{Resource: want, Spec: r.Spec}, &r)
	switch h, u := (resource.Held{}), (resource.Unsupported{}); {
	case errors.As(err, &h):
		return finding{string(declaration.Held), []string{h.Why}}
	case errors.As(err, &u):
		return finding{string(declaration.Unsupported), []string{u.Why}}
	case err != nil:
		return finding{unknown, []string{err.Error()}}
	case !st.Same:
		return finding{drifted, st.Differences}
	case st.Failing != "":
		return finding{failing, []string{st.Failing}}
	}
	return finding{asApplied, nil}
}
