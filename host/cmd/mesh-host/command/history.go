package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (p *program) history() *cobra.Command {
	var limit uint
	c := &cobra.Command{
		Use:     "history",
		Short:   "List the passes in which something was new, the newest first",
		Example: "  mesh-host history\n  mesh-host history --limit 0 --json",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.ask(c.Context(), func(h service.Host) error {
				all, err := h.History(c.Context())
				if err != nil {
					return err
				}
				list := append([]link.Report{}, all...) // none is [] in JSON
				if limit > 0 && uint(len(all)) > limit {
					list = all[:limit]
				}
				return p.print(list, func() error {
					if len(list) == 0 {
						_, err := fmt.Fprintln(p.std.Out, "nothing was applied yet")
						return err
					}
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
					if err := cli.Table(p.std.Out, []string{"WHEN", "FROM", "GENERATION", "TRIGGER", "VERSION", "WHAT"}, rows); err != nil {
						return err
					}
					if older := len(all) - len(list); older > 0 && !p.quiet {
						fmt.Fprintf(p.std.Err, "%s older; --limit 0 lists all\n", cli.Count(older, "pass is", "passes are"))
					}
					return nil
				})
			})
		},
	}
	c.Flags().UintVarP(&limit, "limit", "n", 20, "list this `MANY`, 0 for all that are kept")
	return c
}
