package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say how the control plane is",
		Long: `Say which mesh this is, where its nodes find it, how many there are in which
state, and its modules with where they are present.`,
		Example: "  mesh-controller status\n  mesh-controller status --json",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return ask(c.Context(), a, admin.GetStatus.Ask, admin.None{}, a.printStatus)
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
		on := strings.Join(m.Placement, ", ")
		if m.From != "" {
			on += " (brought along)"
		}
		rows = append(rows, []string{m.Name, fmt.Sprint(m.Version), on, ago(m.Changed)})
	}
	fmt.Fprintln(a.std.Out)
	return a.table([]string{"MODULE", "VERSION", "ON", "CHANGED"}, rows)
}
