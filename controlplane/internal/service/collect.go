package service

import (
	"log/slog"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
)

// collector throws away content that neither a module nor a node needs.
func collector(blobs *content.Store, store *state.Store, log *slog.Logger) *content.Collector {
	return blobs.Collector(func(r content.Report, err error) {
		switch {
		case err != nil:
			log.Warn("content that nobody needs is not thrown away", "cause", err)
		case len(r.Removed) > 0:
			log.Info("content that nobody needs is thrown away", "blobs", len(r.Removed), "bytes", r.Bytes)
		}
	}, module.Keeper(store, blobs))
}
