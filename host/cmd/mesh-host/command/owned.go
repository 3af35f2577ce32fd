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
	unowned := false
	c := &cobra.Command{
		Use:   "owned",
		Short: "List what the host owns, and whether it still is as applied",
		Long: `List what the host owns: what it applied and has a record of. Each is looked
at now, so the list says what is there and not what once was.

--unowned asks the control plane what it declared for this node once, declares no
more, and never heard to be gone, and lists what of that the host does not own:
after a lost store, what would stay for ever. "mesh-host adopt" owns it again.`,
		Example: "  mesh-host owned\n  mesh-host owned --json\n  mesh-host owned --unowned",
		RunE: func(c *cobra.Command, _ []string) error {
			if unowned {
				return p.ask(c.Context(), func(h service.Host) error {
					list, err := h.Unowned(c.Context())
					if err != nil {
						return err
					}
					return p.print(list, func() error { return p.printUnowned(list) })
				})
			}
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
	c.Flags().BoolVar(&unowned, "unowned", false, "list what a lost store left behind")
	return c
}
