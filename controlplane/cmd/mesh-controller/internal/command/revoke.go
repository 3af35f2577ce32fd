package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (a *app) revoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NODE",
		Short: "take a node's credentials away",
		Long: `revoke is for a machine that is lost. Its link is closed, and its credentials
are worth nothing from now on. The machine keeps what it has: nothing is removed
from it, and it can reach nothing of the mesh any more.`,
		Example: "  mesh-controller revoke web1",
		Args:    exactly("NODE"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			n, err := admin.Revoke.Ask(c.Context(), cl, admin.Ref{Ref: args[0]})
			if err != nil {
				return err
			}
			if a.json {
				return cli.JSON(a.std.Out, n)
			}
			a.say("node %q is revoked; the machine keeps what it has", args[0])
			return nil
		},
	}
}
