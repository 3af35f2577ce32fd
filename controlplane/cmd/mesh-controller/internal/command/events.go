package command

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func (a *app) events() *cobra.Command {
	limit := 50
	c := &cobra.Command{
		Use:   "events",
		Short: "Print what happened to the mesh",
		Long: `Print the log of what happened to the mesh, the newest last: who was admitted and
who was refused, what was declared, which node has not applied it, who was
revoked.`,
		Example: "  mesh-controller events\n  mesh-controller events --limit 1000 --json",
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 {
				return fault.Usagef("cannot list %d events: the least is 1", limit).Hint("see %s --help", c.CommandPath())
			}
			return ask(c.Context(), a, admin.Events.Ask, admin.Limit{Limit: limit}, func(es []*state.Event) error {
				var rows [][]string
				for _, e := range es {
					rows = append(rows, []string{e.At.UTC().Format(time.RFC3339), e.Kind, e.Sentence})
				}
				return a.table([]string{"AT", "KIND", "WHAT"}, rows)
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", limit, "how many, at most 10000")
	return c
}
