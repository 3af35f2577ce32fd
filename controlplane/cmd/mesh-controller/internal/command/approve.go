package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (a *app) approve() *cobra.Command {
	var q admin.Approval
	c := &cobra.Command{
		Use:   "approve NODE",
		Short: "admit a machine that is pending",
		Long: `approve admits a machine that came with a --pending token. Compare what
"mesh-controller show NODE" says of it with the machine first: all of it is the
machine's own word.`,
		Example: "  mesh-controller approve web1\n  mesh-controller approve 3f9c2a7b --name db1 --tag db",
		Args:    exactly("NODE"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			q.Ref = args[0]
			n, err := admin.Approve.Ask(c.Context(), cl, q)
			if err != nil {
				return err
			}
			if a.json {
				return cli.JSON(a.std.Out, n)
			}
			a.say("node %q is admitted as %q", n.ID, n.Name)
			return nil
		},
	}
	c.Flags().StringVar(&q.Name, "name", "", "the node's `NAME`; its hostname when not given")
	c.Flags().StringArrayVar(&q.Tags, "tag", nil, "a `TAG` for the node (may be repeated)")
	return c
}
