package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "say how the control plane is",
		Long: `status prints which mesh this is, where its nodes find it, how many there are
in which state, and its modules with where they are present.`,
		Example: "  mesh-controller status\n  mesh-controller status --json",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			s, err := admin.GetStatus.Ask(c.Context(), cl, admin.None{})
			if err != nil {
				return err
			}
			if a.json {
				return cli.JSON(a.std.Out, s)
			}
			return a.printStatus(s)
		},
	}
}

func (a *app) printStatus(s admin.Status) error {
	var nodes []string
	for _, k := range slices.Sorted(maps.Keys(s.Nodes)) {
		nodes = append(nodes, fmt.Sprintf("%d %s", s.Nodes[k], k))
	}
	err := a.table([]string{"MESH", s.Mesh}, [][]string{
		{"version", s.Version},
		{"epoch", fmt.Sprint(s.Epoch)},
		{"mesh root", s.Pin},
		{"listens on", s.Listen},
		{"addresses", strings.Join(s.Addresses, ", ")},
		{"nodes", strings.Join(nodes, ", ")},
		{"links", fmt.Sprint(s.Links)},
	})
	if err != nil || len(s.Modules) == 0 {
		return err
	}
	var rows [][]string
	for _, m := range s.Modules {
		rows = append(rows, []string{m.Name, fmt.Sprint(m.Version), strings.Join(m.Placement, ", "), timeWords(m.Changed)})
	}
	fmt.Fprintln(a.std.Out)
	return a.table([]string{"MODULE", "VERSION", "ON", "CHANGED"}, rows)
}
