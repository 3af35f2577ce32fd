package command

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func (a *app) events() *cobra.Command {
	limit := 50
	c := &cobra.Command{
		Use:   "events",
		Short: "say what happened",
		Long: `events prints the log of what happened to the mesh, the newest last: who was
admitted and who was refused, what was declared, who was revoked.`,
		Example: "  mesh-controller events\n  mesh-controller events --limit 1000 --json",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 {
				return fault.Usagef("cannot list %d events: at least 1", limit)
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			es, err := admin.Events.Ask(c.Context(), cl, admin.Limit{Limit: limit})
			if err != nil {
				return err
			}
			slices.Reverse(es)
			if a.json {
				return cli.JSON(a.std.Out, es)
			}
			var rows [][]string
			for _, e := range es {
				rows = append(rows, []string{timeWords(e.At), e.Kind, e.Sentence})
			}
			return a.table([]string{"AT", "KIND", "WHAT"}, rows)
		},
	}
	c.Flags().IntVar(&limit, "limit", limit, "how many, at most 10000")
	return c
}
