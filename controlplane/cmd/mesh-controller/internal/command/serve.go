package command

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func (a *app) serve() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Be the control plane",
		Long: `Be the control plane: answer the nodes of the mesh and the other commands until
told to stop (SIGTERM), and then let every node know over what time to come back.

It runs as any user. Its state is under /var/lib/nox-mesh-controller; where it
listens is said in /etc/nox-mesh/controller.toml:

  listen = ["[::]:7443"]
  repository_listen = "[::]:7480"   # packages and tarball for new machines; off by default

and so is who is admitted, beside what a token says: the first rule that holds
decides, and may be stricter than the token ("mesh-controller status" lists them).

  [[admission]]
  decision = "refuse"              # or "pending", "admit"
  profile.container = "lxc"        # hostname = "web-*", tag = "web", token = "ID"
  reason = "no containers"

At its first start it makes the mesh. A second one that is started says who
holds the state.`,
		Example: `  mesh-controller serve
  mesh-controller serve --root /tmp/try`,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := layout.New(a.root)
			if err != nil {
				return err
			}
			level := slog.LevelInfo
			switch {
			case a.verbose:
				level = slog.LevelDebug
			case a.quiet:
				level = slog.LevelWarn
			}
			log := slog.New(slog.NewTextHandler(a.std.Err, &slog.HandlerOptions{Level: level}))
			return service.Run(c.Context(), l, clock.System, log)
		},
	}
}
