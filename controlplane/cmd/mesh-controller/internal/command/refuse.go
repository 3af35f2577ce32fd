package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) refuse() *cobra.Command {
	var q admin.Refusal
	c := &cobra.Command{
		Use:   "refuse NODE",
		Short: "Turn down a machine that is pending",
		Long: `Turn down a machine that waits for a person. It is told at its next question, with
the reason, and asks no more; its token's place is free for another machine. What
was decided and on what is kept for a while: see "mesh-controller nodes --all".

A node that was admitted is not refused but revoked.`,
		Example: "  mesh-controller refuse web1\n  mesh-controller refuse 3f9c2a7b --reason 'not one of ours'",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.Ref = args[0]
			return ask(c.Context(), a, admin.Refuse.Ask, q, func(n admin.NodeRefused) error {
				if n.Already {
					a.say("node %q was refused already", args[0])
				} else {
					a.say("node %q is refused, and is told when it asks again", args[0])
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&q.Reason, "reason", "", "what the machine is told, in one `TEXT`")
	return c
}
