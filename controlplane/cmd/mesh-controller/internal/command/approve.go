package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) approve() *cobra.Command {
	var q admin.Approval
	c := &cobra.Command{
		Use:   "approve NODE",
		Short: "Admit a machine that is pending, or release a node that is held",
		Long: `Admit a machine that came with a --pending token. Compare what
"mesh-controller show NODE" says of it with the machine first: all of it is the
machine's own word.

A node that is "cloned" or "ahead" is sent nothing new until it is approved. Two
machines use the key of a cloned one: run "mesh-host identity new" on the copy
first. One that is ahead has a declaration that came after the backup that this
control plane was restored from: approved, it takes the older one that is here.

--rejoin OLD makes a pending machine the node that it was: it gets the name, the
tags, the modules and the history of OLD, whose credential ends.`,
		Example: "  mesh-controller approve web1\n  mesh-controller approve 3f9c2a7b --name db1 --tag db",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.Ref = args[0]
			return ask(c.Context(), a, admin.Approve.Ask, q, func(n admin.Node) error {
				a.say("node %q is approved as %q", n.ID, n.Name)
				return nil
			})
		},
	}
	c.Flags().StringVar(&q.Name, "name", "", "the node's `NAME`; its hostname when not given")
	c.Flags().StringArrayVar(&q.Tags, "tag", nil, "a `TAG` for the node (may be repeated)")
	c.Flags().StringVar(&q.Rejoin, "rejoin", "", "make it the `NODE` that it was")
	return c
}
