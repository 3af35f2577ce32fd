package service

import (
	"context"

	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/metrics"
)

// remote is the running service, asked at its door. When that ends while it is
// asked, whoever holds the store next is: the service that is back, or, when none
// is, one opened here.
type remote struct {
	cfg  Config
	door *door.Client
	own  *Service
}

func (r *remote) close() error {
	if r.own == nil {
		return nil
	}
	return r.own.Close()
}

// mostAsked is how often one question is asked: who ends at each ends because of
// it.
const mostAsked = 3

// ask asks for the deed.
func (d deed[Q, A]) ask(ctx context.Context, r *remote, q Q) (A, error) {
	for asked := 1; ; asked++ {
		if r.own != nil {
			return d.do(r.own, ctx, q)
		}
		a, err := d.Ask(ctx, r.door, q)
		again := door.HowOf(err) == door.Absent || door.HowOf(err) == door.Cut && d.Again
		if !again || asked == mostAsked {
			return a, err
		}
		if err := r.connect(ctx); err != nil {
			return a, err
		}
	}
}

func (r *remote) Status(ctx context.Context) (Status, error) {
	return verbStatus.ask(ctx, r, door.None{})
}

func (r *remote) Owned(ctx context.Context) ([]Owned, error) {
	return verbOwned.ask(ctx, r, door.None{})
}

func (r *remote) History(ctx context.Context) ([]link.Report, error) {
	return verbHistory.ask(ctx, r, door.None{})
}

func (r *remote) Metrics(ctx context.Context) ([]metrics.Family, error) {
	return verbMetrics.ask(ctx, r, door.None{})
}

func (r *remote) Plan(ctx context.Context, document []byte) ([]apply.Step, error) {
	return verbPlan.ask(ctx, r, document)
}

func (r *remote) Apply(ctx context.Context, document []byte) (link.Report, error) {
	return verbApply.ask(ctx, r, document)
}

func (r *remote) Bundle(ctx context.Context, b BundleRequest) (link.Report, error) {
	return verbBundle.ask(ctx, r, b)
}

func (r *remote) Enrol(ctx context.Context, token string) (Enrolled, error) {
	return verbEnrol.ask(ctx, r, token)
}

func (r *remote) NewIdentity(ctx context.Context, token string) (Enrolled, error) {
	return verbIdentity.ask(ctx, r, token)
}

func (r *remote) Unowned(ctx context.Context) ([]Unowned, error) {
	return verbUnowned.ask(ctx, r, door.None{})
}

func (r *remote) Adopt(ctx context.Context, q AdoptRequest) ([]Unowned, error) {
	return verbAdopt.ask(ctx, r, q)
}

func (r *remote) Retire(ctx context.Context, q RetireRequest) (Retired, error) {
	return verbRetire.ask(ctx, r, q)
}

func (r *remote) Pass(ctx context.Context) (link.Report, error) {
	return verbPass.ask(ctx, r, door.None{})
}
