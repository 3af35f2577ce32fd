package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (a *app) retire() *cobra.Command {
	var q admin.Retirement
	c := &cobra.Command{
		Use:   "retire NODE",
		Short: "Have a node take away what it owns, and leave",
		Long: `Have a node take away what it owns, and leave the mesh: it is sent a last
declaration that declares nothing, removes what it owns, says so, and forgets who it
was. Its machine keeps the host, which knows no mesh then. A node that is away does
so when it comes back; one that never will is for "mesh-controller revoke".

What it cannot take away is in its reports, and it stays "retiring" until that is
gone. A node whose host is older than this and cannot leave by itself removes what
it owns and stays "retiring"; revoke it then.

The node that runs the control plane is refused without --last.`,
		Example: "  mesh-controller retire web1 --dry-run\n  mesh-controller retire web1\n  mesh-controller retire db1 --keep-resources",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.Ref = args[0]
			return ask(c.Context(), a, admin.Retire.Ask, q, func(n admin.NodeRetiring) error {
				what := "removes"
				if q.KeepResources {
					what = "lets go of"
				}
				switch {
				case q.DryRun:
					for _, key := range n.Owns {
						fmt.Fprintln(a.std.Out, cli.OneLine(key))
					}
					a.say("node %q %s these %s and leaves", called(n.Node), what, cli.Count(len(n.Owns), "resource", "resources"))
				case n.State == "retired":
					a.say("node %q has left already", called(n.Node))
				case n.Already:
					a.say("node %q is to leave already", called(n.Node))
				case n.Connected:
					a.say("node %q %s what it owns and leaves; `mesh-controller show %s` says how far it is", called(n.Node), what, called(n.Node))
				default:
					a.say("node %q is away: it %s what it owns and leaves when it comes back", called(n.Node), what)
				}
				return nil
			})
		},
	}
	f := c.Flags()
	f.BoolVar(&q.KeepResources, "keep-resources", false, "have it let go of what it owns, which stays on the machine unmanaged")
	f.BoolVar(&q.DryRun, "dry-run", false, "only list what it said last that it owns")
	lastFlag(c, &q.Last)
	return c
}
