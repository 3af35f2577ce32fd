package service

import (
	"log/slog"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/ca"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/restore"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// takeUp puts what a restore laid down in its place, if there is such, and opens the
// state, both before anybody else can.
func takeUp(l layout.Layout, c clock.Clock, log *slog.Logger) (*state.Store, *state.Mesh, *ca.Authority, error) {
	order, release, err := restore.TakeUp(l)
	if err != nil {
		return nil, nil, nil, err
	}
	defer release()
	if order != nil {
		log.Info("a backup is restored", "mesh", order.Mesh, "backup", order.Backup, "epoch", order.Epoch, "before", order.Former)
	}
	return open(l, c)
}
