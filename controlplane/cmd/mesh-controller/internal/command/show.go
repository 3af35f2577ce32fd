package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

func (a *app) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show NODE",
		Short: "Say everything that is known of a node",
		Long: `Say what is known of one node: the decision about it and what it was decided on,
its modules, its last reports, since when it has not applied what it was sent, and
what fails on it, with the error and since when. "grants" is what it may reach
beside its own link, and what of that is still to be taken away. NODE is a name, an
id, the beginning of an id, or the hostname of a machine that is pending or was
refused.`,
		Example: "  mesh-controller show web1\n  mesh-controller show 3f9c2a7b --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return ask(c.Context(), a, admin.Show.Ask, admin.Ref{Ref: args[0]}, a.printNode)
		},
	}
}

func (a *app) printNode(n admin.NodeDetail) error {
	now := clock.System.Now()
	if n.State == admin.Orphan {
		return a.table([]string{"NODE", called(n.Node)}, [][]string{
			{"id", n.ID},
			{"state", n.State + ": it has a certificate of this mesh and is in no record; `mesh-controller approve " + n.ID[:8] + "` takes it back"},
			{"key", n.Key},
			{"last seen", seenWords(n.Node, now)},
		})
	}
	rows := [][]string{
		{"id", n.ID},
		{"hostname", n.Hostname},
		{"state", n.State},
		{"decision", fmt.Sprintf("%s: %s, %s", n.Decision.State, n.Decision.Reason, cli.Ago(now, n.Decision.At))},
		{"tags", strings.Join(n.Tags, ", ")},
		{"decided on", n.Decision.Profile},
		{"modules", strings.Join(n.Modules, ", ")},
		{"grants", grantWords(n.Grants, now)},
		{"generation", fmt.Sprintf("%d applied, %d wanted", n.Applied, n.Wanted)},
		{"declaration", n.Declaration},
		{"version", versionWords(n.Node)},
	}
	rows = append(rows, machineRows(n.Profile, n.Inventory)...)
	rows = append(rows, []string{"last seen", seenWords(n.Node, now)})
	if !n.Behind.IsZero() {
		rows = append(rows, []string{"not applied", fmt.Sprintf(
			"generation %d, which it could have had %s; run `journalctl -u mesh-host` there for why", n.Wanted, cli.Ago(now, n.Behind))})
	}
	if n.Hold != nil {
		rows = append(rows, []string{"held", fmt.Sprintf("%s, %s; `mesh-controller approve %s` releases it", n.Hold.Sentence, cli.Ago(now, n.Hold.At), called(n.Node))},
			[]string{"would lose", strings.Join(n.Loses, ", ")})
	}
	if n.Conflict != "" {
		rows = append(rows, []string{"conflict", n.Conflict})
	}
	if n.Inventory != nil {
		rows = append(rows, []string{"owns", cli.Count(len(n.Inventory.Owned), "resource", "resources")})
	}
	if err := a.table([]string{"NODE", called(n.Node)}, rows); err != nil {
		return err
	}
	if len(n.Failing) > 0 {
		rows = nil
		for _, f := range n.Failing {
			rows = append(rows, []string{f.Key, f.Outcome, cli.Ago(now, f.Since), f.Error})
		}
		fmt.Fprintln(a.std.Out)
		if err := a.table([]string{"FAILING", "OUTCOME", "SINCE", "ERROR"}, rows); err != nil {
			return err
		}
	}
	if len(n.Reports) == 0 {
		return nil
	}
	rows = nil
	for _, r := range n.Reports {
		changed, bad := 0, 0
		for _, x := range r.Report.Resources {
			if x.Outcome.Changed() {
				changed++
			}
			if !x.Outcome.Good() {
				bad++
			}
		}
		rows = append(rows, []string{
			cli.Ago(now, r.At), r.Report.Source, fmt.Sprint(r.Report.Generation), r.Report.Trigger,
			fmt.Sprint(len(r.Report.Resources)), fmt.Sprint(changed), fmt.Sprint(bad),
		})
	}
	fmt.Fprintln(a.std.Out)
	return a.table([]string{"REPORT", "SOURCE", "GENERATION", "TRIGGER", "RESOURCES", "CHANGED", "FAILED"}, rows)
}

// grantWords says what a node holds, and what of that is on its way.
func grantWords(gs []*state.Grant, now time.Time) string {
	var out []string
	for _, g := range gs {
		words := g.Provider
		if g.State != state.Granted {
			words = fmt.Sprintf("%s at %s for %s", g.State, g.Provider, cli.Span(now.Sub(g.Since)))
		}
		if g.Error != "" {
			words += " (" + g.Error + ")"
		}
		out = append(out, words)
	}
	return strings.Join(out, ", ")
}
