package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) approve() *cobra.Command {
	var q admin.Approval
	c := &cobra.Command{
		Use:   "approve NODE",
		Short: "Admit a machine that is pending or was refused",
		Long: `Admit a machine that came with a --pending token. Compare what
"mesh-controller show NODE" says of it with the machine first: all of it is the
machine's own word.

A machine that was refused, by a rule or a person, can be approved as long as it is
listed ("mesh-controller nodes --all"). It has stopped asking: run "mesh-host enrol -"
there once more, with the same token or another.`,
		Example: "  mesh-controller approve web1\n  mesh-controller approve 3f9c2a7b --name db1 --tag db",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.Ref = args[0]
			return ask(c.Context(), a, admin.Approve.Ask, q, func(n admin.Node) error {
				if n.Name == "" {
					a.say("node %q is approved, and admitted when it asks again: run `mesh-host enrol -` there", n.ID)
					return nil
				}
				a.say("node %q is admitted as %q", n.ID, n.Name)
				return nil
			})
		},
	}
	c.Flags().StringVar(&q.Name, "name", "", "the node's `NAME`; its hostname when not given")
	c.Flags().StringArrayVar(&q.Tags, "tag", nil, "a `TAG` for the node (may be repeated)")
	return c
}
