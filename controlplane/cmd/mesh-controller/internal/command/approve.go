package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) approve() *cobra.Command {
	var q admin.Approval
	c := &cobra.Command{
		Use:   "approve NODE",
		Short: "Admit a machine, take back an orphan, release a node that is held",
		Long: `Admit a machine that came with a --pending token. Compare what
"mesh-controller show NODE" says of it with the machine first: all of it is the
machine's own word.

A machine that was refused, by a rule or a person, can be approved as long as it is
listed ("mesh-controller nodes --all"). It has stopped asking: run "mesh-host enrol -"
there once more, with the same token or another.

A node that is "cloned" or "ahead" is held: it is sent nothing new until it is
approved. Two machines use the key of a cloned one: run "mesh-host identity new" on
the copy first. One that is ahead has a declaration that came after the backup that
this control plane was restored from: approved, it takes the older one that is here.

After a restore it also takes back an orphan: a node that was enrolled after the
backup. It is a node again then, and keeps what it has: it is ahead, because its host
would remove what is in no module. "mesh-controller show NODE" says what that would
be. Place what it shall have, and approve it once more: that releases it.

--rejoin OLD makes a pending machine the node that it was: it gets the name, the
tags, the modules and the history of OLD, whose credential ends.`,
		Example: "  mesh-controller approve web1\n  mesh-controller approve 3f9c2a7b --name db1 --tag db",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.Ref = args[0]
			return ask(c.Context(), a, admin.Approve.Ask, q, func(n admin.Node) error {
				switch {
				case n.Name == "":
					a.say("node %q is approved, and admitted when it asks again: run `mesh-host enrol -` there", n.ID)
				case n.Hold != nil:
					a.say("node %q is taken back as %q and keeps what it has; `mesh-controller show %s` says what it would lose: place that, and approve it once more", n.ID, n.Name, n.Name)
				case n.State == "enrolling":
					a.say("node %q is admitted as %q", n.ID, n.Name)
				default:
					a.say("node %q is released: it is told what it shall be", n.Name)
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&q.Name, "name", "", "the node's `NAME`; its hostname when not given")
	c.Flags().StringArrayVar(&q.Tags, "tag", nil, "a `TAG` for the node (may be repeated)")
	c.Flags().StringVar(&q.Rejoin, "rejoin", "", "make it the `NODE` that it was")
	return c
}
