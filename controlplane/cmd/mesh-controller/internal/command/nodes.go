package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

func (a *app) nodes() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "nodes",
		Short: "List the nodes",
		Long: `List the nodes, by name: the state of each, the version of the host that runs on
it, the generation it has applied and the one it shall have, how many resources
are not as declared, and when it was last heard of.

"not applied" says that a node is connected and does not do what it was told: its
mesh-host may have refused the declaration, and its log says why. "conflict" says
that its modules cannot be composed; "mesh-controller show NODE" says why.

After a restore, "orphan" is a node that was enrolled after the backup, under the name
it gives itself. "cloned" and "ahead" are nodes that are sent nothing new until a person
approves them.

Machines that were refused, and nodes that left, are listed with --all; of those that
were refused the newest 200.`,
		Example: "  mesh-controller nodes\n  mesh-controller nodes --all --json",
		RunE: func(c *cobra.Command, _ []string) error {
			list := func(ctx context.Context, cl *admin.Client, q admin.None) ([]admin.Node, error) {
				ns, err := admin.Nodes.Ask(ctx, cl, q)
				if !all {
					ns = slices.DeleteFunc(ns, func(n admin.Node) bool { return n.State == string(state.Refused) || n.State == string(state.Retired) })
				}
				return ns, err
			}
			return ask(c.Context(), a, list, admin.None{}, a.printNodes)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "list machines that were refused and nodes that left, too")
	return c
}

func (a *app) printNodes(ns []admin.Node) error {
	now := clock.System.Now()
	var rows [][]string
	for _, n := range ns {
		rows = append(rows, []string{
			called(n), n.ID[:8], stateWords(n), versionWords(n), appliedWords(n, now), fmt.Sprint(n.Failed), seenWords(n, now),
		})
	}
	return a.table([]string{"NODE", "ID", "STATE", "VERSION", "APPLIED", "FAILED", "LAST SEEN"}, rows)
}

// called is the node's name, or in brackets what the machine calls itself.
func called(n admin.Node) string {
	if n.Name != "" {
		return n.Name
	}
	return "(" + n.Hostname + ")"
}

func stateWords(n admin.Node) string {
	if n.Conflict != "" {
		return n.State + ", conflict"
	}
	return n.State
}

func versionWords(n admin.Node) string {
	if n.Installed != "" && n.Installed != n.Version {
		return n.Version + " (installed " + n.Installed + ")"
	}
	return n.Version
}

// appliedWords says which generation a node has and which it shall have.
func appliedWords(n admin.Node, now time.Time) string {
	words := fmt.Sprintf("%d/%d", n.Applied, n.Wanted)
	if !n.Behind.IsZero() {
		words += ", not applied for " + cli.Span(now.Sub(n.Behind))
	}
	return words
}

func seenWords(n admin.Node, now time.Time) string {
	if n.LastSeen.IsZero() {
		return "never connected"
	}
	return cli.Ago(now, n.LastSeen)
}
