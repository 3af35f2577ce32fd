package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/installer"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (p *program) uninstall() *cobra.Command {
	o := installer.UninstallOptions{}
	var ask agreement
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Take the host away again",
		Long: `Take away exactly what install laid down. What a person changed stays, and so
does the host's state unless --purge.

It shows what goes and asks; a script says --yes. --dry-run only shows it.

While the host owns resources it is refused: they would stay with nobody to
look after them. "mesh-host retire" takes them away, and leaves the mesh. Or say
--keep-resources.`,
		Example: "  mesh-host retire && mesh-host uninstall\n  mesh-host uninstall --purge --yes\n  mesh-host uninstall --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.layout()
			if err != nil {
				return err
			}
			if err := ask.possible(p, "uninstall"); err != nil {
				return err
			}
			o.Layout, o.Owner = l, asker{p}
			if !ask.yes {
				plan := o
				plan.DryRun = true
				s, err := installer.Uninstall(c.Context(), plan)
				if err != nil {
					return err
				}
				show := func() error {
					if err := p.printUninstall(s, "goes", "stays"); err != nil {
						return err
					}
					if _, err := os.Lstat(l.HostIdentity()); err == nil {
						fmt.Fprintln(p.std.Out, "this machine is a node of a mesh, which is not told; mesh-host retire leaves it")
					}
					return nil
				}
				if ask.dryRun {
					return p.print(s, show)
				}
				if err := show(); err != nil {
					return err
				}
				if err := ask.ask(c.Context(), p, "take the host away?"); err != nil {
					return err
				}
			}
			s, err := installer.Uninstall(c.Context(), o)
			if err != nil {
				return err
			}
			return p.print(s, func() error {
				if p.quiet {
					return nil
				}
				if err := p.printUninstall(s, "removed", "kept"); err != nil || o.Purge {
					return err
				}
				_, err := fmt.Fprintln(p.std.Out, "the host's state stays; mesh-host uninstall --purge takes it away as well")
				return err
			})
		},
	}
	c.Flags().BoolVar(&o.KeepResources, "keep-resources", false, "leave what the host owns on the machine, unmanaged")
	c.Flags().BoolVar(&o.Purge, "purge", false, "take the state away as well: store, identity, content")
	ask.flags(c)
	return c
}

func (p *program) printUninstall(s installer.UninstallSummary, removed, kept string) error {
	var rows [][]string
	for _, f := range s.Removed {
		rows = append(rows, []string{removed, f})
	}
	for _, f := range s.Kept {
		rows = append(rows, []string{kept, f})
	}
	return cli.Table(p.std.Out, []string{"WHAT", "PATH"}, rows)
}
