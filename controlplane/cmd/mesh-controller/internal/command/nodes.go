package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (a *app) nodes() *cobra.Command {
	return &cobra.Command{
		Use:   "nodes",
		Short: "list the nodes",
		Long: `nodes prints one line a node: its state, the version of the host that runs on
it, the generation it has applied and the one it shall have, how many resources
are not as declared, and when it was last heard of. "conflict" beside the state
says that its modules cannot be composed; "mesh-controller show NODE" says why.`,
		Example: "  mesh-controller nodes\n  mesh-controller nodes --json",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			ns, err := admin.Nodes.Ask(c.Context(), cl, admin.None{})
			if err != nil {
				return err
			}
			if a.json {
				return cli.JSON(a.std.Out, ns)
			}
			var rows [][]string
			for _, n := range ns {
				rows = append(rows, []string{
					called(n), n.ID[:8], stateWords(n), versionWords(n), fmt.Sprintf("%d/%d", n.Applied, n.Wanted),
					fmt.Sprint(n.Failed), timeWords(n.LastSeen),
				})
			}
			return a.table([]string{"NODE", "ID", "STATE", "VERSION", "APPLIED", "FAILED", "LAST SEEN"}, rows)
		},
	}
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

func timeWords(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}
