package service

import (
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/nox-mesh/nox-mesh/internal/cgroup"
)

// collectAt is how much, in hundredths of what is alive, may be garbage before it
// is collected. What is alive are the links, which stay; Go's hundred would have
// the machine give their memory twice.
const collectAt = 50

// frugal has the collector keep within what the machine gives this process: Go
// does not look at control groups, and is killed where it could have collected.
// An eighth is for what is not Go's: sockets, and pages of the state. Who set GOGC
// or GOMEMLIMIT has decided.
func frugal(log *slog.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	limit, limited := cgroup.Memory()
	if limited && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 8 * 7)
		log.Debug("memory is limited", "bytes", limit)
	}
}
