package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (a *app) undeclare() *cobra.Command {
	return &cobra.Command{
		Use:   "undeclare NAME",
		Short: "remove a module",
		Long: `undeclare removes a module. The hosts of the nodes it was present on remove
what it declared.`,
		Example: "  mesh-controller undeclare motd",
		Args:    exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			ch, err := admin.Undeclare.Ask(c.Context(), cl, admin.ModuleRef{Name: args[0]})
			if err != nil {
				return err
			}
			if a.json {
				return cli.JSON(a.std.Out, ch)
			}
			a.say("module %q is gone: %d nodes get a new declaration", args[0], len(ch.Nodes))
			return nil
		},
	}
}
