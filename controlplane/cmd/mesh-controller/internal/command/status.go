package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/progress"
)

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say how the control plane is",
		Long: `Say which mesh this is, where its nodes find it, what new machines are served and
where, how many nodes there are in which state, the rules of admission that are in
force, its modules with where they are present, and the bundles that were pushed and
are placed nowhere yet.`,
		Example: "  mesh-controller status\n  mesh-controller status --json",
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
	epoch := fmt.Sprint(s.Epoch)
	if r := s.Restored; r != nil {
		epoch += ", restored " + ago(r.At) + " from a backup of " + r.Backup.UTC().Format(time.RFC3339)
	}
	err := a.table([]string{"MESH", s.Mesh}, [][]string{
		{"version", s.Version},
		{"epoch", epoch},
		{"mesh root", s.Pin},
		{"listens on", s.Listen},
		{"addresses", strings.Join(s.Addresses, ", ")},
		{"nodes", strings.Join(nodes, ", ")},
		{"new machines", servedWords(s.Repository)},
		{"links", fmt.Sprint(s.Links)},
		{"content", cli.Count(s.Content.Blobs, "blob", "blobs") + ", " + progress.Bytes(s.Content.Bytes)},
	})
	if err != nil {
		return err
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(a.std.Out, "\nwarning: %s\n", cli.OneLine(w))
	}
	if err := a.printRules(s.Admission); err != nil {
		return err
	}
	if err := a.printPlaced(s); err != nil {
		return err
	}
	var rows [][]string
	for _, p := range s.Pushed {
		if len(p.Placement) > 0 {
			continue
		}
		rows = append(rows, []string{p.Name, p.Version, p.Architecture, fmt.Sprint(p.Counter), signers(p.Signers), ago(p.At)})
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(a.std.Out)
	return a.table([]string{"NOT PLACED", "VERSION", "FOR", "COUNTER", "SIGNED BY", "PUSHED"}, rows)
}

// servedWords says what new machines are served, and where.
func servedWords(r admin.Repository) string {
	if r.Listen == "" {
		return "are served nothing (repository_listen)"
	}
	what := "nothing yet"
	var releases []string
	for _, s := range r.Serves {
		releases = append(releases, s.Version+" for "+s.Architecture)
	}
	if len(releases) > 0 {
		what = strings.Join(releases, ", ")
	}
	return "are served " + what + " on " + r.Listen
}

func (a *app) printPlaced(s admin.Status) error {
	var rows [][]string
	for _, m := range s.Modules {
		on := strings.Join(m.Placement, ", ")
		if m.From != "" {
			on += " (brought along)"
		}
		rows = append(rows, []string{m.Name, fmt.Sprint(m.Version), on, ago(m.Changed)})
	}
	for _, p := range s.Pushed {
		if len(p.Placement) > 0 {
			rows = append(rows, []string{p.Name, p.Version + " for " + p.Architecture, strings.Join(p.Placement, ", "), ago(p.At)})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(a.std.Out)
	return a.table([]string{"MODULE", "VERSION", "ON", "CHANGED"}, rows)
}

func (a *app) printRules(rules []admin.Rule) error {
	if len(rules) == 0 {
		return nil
	}
	var rows [][]string
	for i, r := range rules {
		when := strings.Join(r.When, ", ")
		if when == "" {
			when = "always"
		}
		rows = append(rows, []string{fmt.Sprint(i + 1), r.Decision, when, r.Reason})
	}
	fmt.Fprintln(a.std.Out)
	return a.table([]string{"ADMISSION RULE", "DECISION", "WHEN", "REASON"}, rows)
}
