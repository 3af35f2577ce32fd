package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func (p *program) adopt() *cobra.Command {
	var q service.AdoptRequest
	c := &cobra.Command{
		Use:   "adopt ID...",
		Short: "Own again what a lost store left behind",
		Long: `Own again what the control plane declared for this node once, declares no more, and
never heard to be gone: a host that lost its store has no record of it, and it would
stay on the machine for ever. "mesh-host owned --unowned" lists it.

What is owned and not declared is removed: by the pass that follows. To keep a thing,
declare it first. What is not as it was declared any more is not adopted.`,
		Example: "  mesh-host owned --unowned\n  mesh-host adopt web/index file:/etc/motd\n  mesh-host adopt --all --dry-run",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			q.IDs = args
			switch {
			case len(args) == 0 && !q.All:
				return fault.Usagef("cannot adopt: nothing is named").Hint("name ids of mesh-host owned --unowned, or say --all")
			case len(args) > 0 && q.All:
				return fault.Usagef("cannot adopt: ids and --all were given")
			}
			return p.ask(c.Context(), func(h service.Host) error {
				list, err := h.Adopt(c.Context(), q)
				if err != nil {
					return err
				}
				return p.print(list, func() error {
					if q.DryRun || len(list) == 0 {
						return p.printUnowned(list)
					}
					if !p.quiet {
						for _, u := range list {
							fmt.Fprintf(p.std.Out, "adopted %s\n", cli.OneLine(u.Key))
						}
					}
					return nil
				})
			})
		},
	}
	c.Flags().BoolVar(&q.All, "all", false, "all that is as it was declared")
	c.Flags().BoolVar(&q.DryRun, "dry-run", false, "only list what would be adopted")
	return c
}

func (p *program) printUnowned(list []service.Unowned) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(p.std.Out, "nothing is unowned")
		return err
	}
	var rows [][]string
	for _, u := range list {
		there := u.There
		if len(u.Differences) > 0 {
			there += ": " + cli.OneLine(strings.Join(u.Differences, ", "))
		}
		rows = append(rows, []string{cli.OneLine(u.Key), cli.OneLine(u.ID), there})
	}
	return cli.Table(p.std.Out, []string{"RESOURCE", "ID", "NOW"}, rows)
}
