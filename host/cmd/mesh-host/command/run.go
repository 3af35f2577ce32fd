package command

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

func (p *program) run() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Be the service (the unit starts this)",
		Long: `Be the service: apply the declaration in force, keep it applied, hold the link
to the control plane, and answer the other commands. The unit mesh-host.service
starts this; without a service manager, keep it running by whatever you have.

SIGTERM: the resource in hand is finished and recorded, then it ends.
SIGHUP: host.toml is read again.`,
		Example: "  systemctl status mesh-host\n  mesh-host run --root /tmp/try",
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.layout()
			if err != nil {
				return err
			}
			cli.HangupReloads(c.Context())
			return service.Run(c.Context(), service.Config{Layout: l, Clock: clock.System, Log: p.journal()})
		},
	}
}

// journal is the log of the service: one line a change, none for a pass that
// changed nothing. In the journal each has its priority.
func (p *program) journal() *slog.Logger {
	level := slog.LevelInfo
	switch {
	case p.verbose:
		level = slog.LevelDebug
	case p.quiet:
		level = slog.LevelError
	}
	o := &slog.HandlerOptions{Level: level}
	if toJournal(p.std.Err) {
		return slog.New(journalHandler(p.std.Err, o))
	}
	return slog.New(slog.NewTextHandler(p.std.Err, o))
}
