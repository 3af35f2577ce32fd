package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (a *app) undeclare() *cobra.Command {
	var q admin.ModuleRef
	c := &cobra.Command{
		Use:   "undeclare NAME",
		Short: "Remove a module",
		Long: `Remove a module. The hosts of the nodes it was present on remove what it
declared. Bundles of that name that were pushed are forgotten, and content that
nobody needs any more is thrown away.

The module that the control plane itself runs by is refused without --last.`,
		Example: "  mesh-controller undeclare motd",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.Name = args[0]
			return ask(c.Context(), a, admin.Undeclare.Ask, q, func(ch module.Change) error {
				a.say("module %q is gone: %s a new declaration", args[0], cli.Count(len(ch.Nodes), "node gets", "nodes get"))
				return nil
			})
		},
	}
	lastFlag(c, &q.Last)
	return c
}

// lastFlag gives a command the flag that lets it end the control plane.
func lastFlag(c *cobra.Command, last *bool) {
	c.Flags().BoolVar(last, "last", false, "do it even if it ends this control plane")
}
