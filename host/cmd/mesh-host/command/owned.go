package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

func (p *program) owned() *cobra.Command {
	return &cobra.Command{
		Use:   "owned",
		Short: "List what the host owns, and whether it still is as applied",
		Long: `List what the host owns: what it applied and has a record of. Each is looked
at now, so the list says what is there and not what once was.`,
		Example: "  mesh-host owned\n  mesh-host owned --json",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.ask(c.Context(), func(h service.Host) error {
				list, err := h.Owned(c.Context())
				if err != nil {
					return err
				}
				return p.print(list, func() error {
					if len(list) == 0 {
						_, err := fmt.Fprintln(p.std.Out, "this host owns nothing")
						return err
					}
					now := clock.System.Now()
					var rows [][]string
					for _, o := range list {
						by := "this machine"
						if o.Mesh != "" {
							by = "the mesh"
						}
						there := o.There
						if len(o.Differences) > 0 {
							there += ": " + cli.OneLine(strings.Join(o.Differences, ", "))
						}
						rows = append(rows, []string{o.Key, o.ID, by, cli.Ago(now, o.Since), there})
					}
					return cli.Table(p.std.Out, []string{"RESOURCE", "ID", "DECLARED BY", "APPLIED", "NOW"}, rows)
				})
			})
		},
	}
}
