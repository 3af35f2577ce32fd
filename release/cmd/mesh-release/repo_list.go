package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/release/internal/repository"
)

func (p *program) repoListCommand() *cobra.Command {
	var o repository.Options
	var trusted string
	c := &cobra.Command{
		Use:     "list REPO",
		Short:   "List the packages of a repository",
		Long:    "List the packages of a repository whose databases verify, the newest first. What\nis kept, but not listed, no pacman installs by name.",
		Example: "  mesh-release repo list --trust keys repo/x86_64",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := p.repoTrust(trusted, &o); err != nil {
				return err
			}
			packages, err := repository.List(c.Context(), args[0], o)
			if err != nil {
				return err
			}
			if p.json {
				return cli.JSON(p.std.Out, packages)
			}
			var rows [][]string
			for _, k := range packages {
				is := "kept"
				if k.Listed {
					is = "listed"
				}
				rows = append(rows, []string{k.Name, k.Version, k.Arch, strconv.FormatInt(k.Size, 10), is})
			}
			return cli.Table(p.std.Out, []string{"NAME", "VERSION", "ARCH", "SIZE", "IS"}, rows)
		},
	}
	repoTrustFlags(c, &trusted, &p.keys)
	return c
}
