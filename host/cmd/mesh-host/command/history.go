package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (p *program) history() *cobra.Command {
	return &cobra.Command{
		Use:     "history",
		Short:   "List the passes in which something was new, the newest first",
		Example: "  mesh-host history\n  mesh-host history --json",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.ask(c.Context(), func(h service.Host) error {
				list, err := h.History(c.Context())
				if err != nil {
					return err
				}
				return p.print(list, func() error {
					var rows [][]string
					for _, r := range list {
						counts := map[declaration.Outcome]int{}
						for _, x := range r.Resources {
							counts[x.Outcome]++
						}
						var did []string
						for _, o := range []declaration.Outcome{declaration.Failed, declaration.Skipped, declaration.Held, declaration.Unsupported,
							declaration.Applied, declaration.Repaired, declaration.Removed, declaration.Released, declaration.Adopted, declaration.Unchanged} {
							if counts[o] > 0 {
								did = append(did, fmt.Sprintf("%d %s", counts[o], o))
							}
						}
						if did == nil {
							did = []string{"nothing is declared"}
						}
						from := r.Source
						if r.Mesh != "" {
							from = "mesh"
						}
						rows = append(rows, []string{r.Finished.UTC().Format("2006-01-02 15:04:05Z"), from, fmt.Sprint(r.Generation), r.Trigger, r.Version, strings.Join(did, ", ")})
					}
					return cli.Table(p.std.Out, []string{"WHEN", "FROM", "GENERATION", "TRIGGER", "VERSION", "WHAT"}, rows)
				})
			})
		},
	}
}
