package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) revoke() *cobra.Command {
	var q admin.Leaving
	c := &cobra.Command{
		Use:   "revoke NODE",
		Short: "Take a node's credentials away",
		Long: `Take the credentials of a node away: for a machine that is lost. Its link is
closed, and its credentials are worth nothing from now on. The machine keeps what
it has: nothing is removed from it, and it can reach nothing of the mesh any more.

The node that runs the control plane is refused without --last.`,
		Example: "  mesh-controller revoke web1",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.Ref = args[0]
			return ask(c.Context(), a, admin.Revoke.Ask, q, func(n admin.NodeRevoked) error {
				if n.Already {
					a.say("node %q was revoked already; the machine keeps what it has", args[0])
				} else {
					a.say("node %q is revoked; the machine keeps what it has", args[0])
				}
				return nil
			})
		},
	}
	lastFlag(c, &q.Last)
	return c
}
