package service

import (
	"context"
	"net/http"

	"github.com/nox-mesh/nox-mesh/internal/door"
)

// A deed is a verb at the host's door and the method that does it.
type deed[Q, A any] struct {
	door.Verb[Q, A]
	do func(*Service, context.Context, Q) (A, error)
}

// repeatable makes a deed of a verb that may be asked again: each of the host's
// may. A declaration that is in force is accepted, and a token that was used by
// this machine enrols it, without anything being done twice.
func repeatable[Q, A any](name string, do func(*Service, context.Context, Q) (A, error)) deed[Q, A] {
	return deed[Q, A]{door.Verb[Q, A]{Name: name, Again: true}, do}
}

// The verbs of Host.
var (
	verbStatus   = repeatable("status", bare((*Service).Status))
	verbOwned    = repeatable("owned", bare((*Service).Owned))
	verbHistory  = repeatable("history", bare((*Service).History))
	verbMetrics  = repeatable("metrics", bare((*Service).Metrics))
	verbPlan     = repeatable("plan", (*Service).Plan)
	verbApply    = repeatable("apply", (*Service).Apply)
	verbBundle   = repeatable("bundle", (*Service).Bundle)
	verbEnrol    = repeatable("enrol", (*Service).Enrol)
	verbIdentity = repeatable("identity-new", (*Service).NewIdentity)
	verbUnowned  = repeatable("unowned", bare((*Service).Unowned))
	verbAdopt    = deed[AdoptRequest, []Unowned]{door.Verb[AdoptRequest, []Unowned]{Name: "adopt"}, (*Service).Adopt}
	verbRetire   = repeatable("retire", (*Service).Retire)
	verbPass     = repeatable("pass", bare((*Service).Pass))
)

// bare is a method without a question.
func bare[A any](f func(*Service, context.Context) (A, error)) func(*Service, context.Context, door.None) (A, error) {
	return func(s *Service, ctx context.Context, _ door.None) (A, error) { return f(s, ctx) }
}

// handle puts s behind the deed.
func (d deed[Q, A]) handle(m *http.ServeMux, s *Service) {
	d.Handle(m, func(ctx context.Context, q Q) (A, error) { return d.do(s, ctx, q) })
}

// handler is the service's side of its door.
func (s *Service) handler() http.Handler {
	m := http.NewServeMux()
	verbStatus.handle(m, s)
	verbOwned.handle(m, s)
	verbHistory.handle(m, s)
	verbMetrics.handle(m, s)
	m.HandleFunc("GET /v1/metrics", s.scraped)
	verbPlan.handle(m, s)
	verbApply.handle(m, s)
	verbBundle.handle(m, s)
	verbEnrol.handle(m, s)
	verbIdentity.handle(m, s)
	verbUnowned.handle(m, s)
	verbAdopt.handle(m, s)
	verbRetire.handle(m, s)
	verbPass.handle(m, s)
	return m
}
