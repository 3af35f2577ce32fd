package main

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/release/internal/repository"
)

func (p *program) repoRemoveCommand() *cobra.Command {
	var o repository.Options
	c := &cobra.Command{
		Use:     "remove REPO NAME…",
		Short:   "Remove packages, in all their versions, from a repository",
		Example: "  mesh-release repo remove --keys keys repo/x86_64 web",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := p.repoSigning(&o); err != nil {
				return err
			}
			done, err := repository.Remove(c.Context(), args[0], args[1:], o)
			if err != nil {
				return err
			}
			return p.printChange(done)
		},
	}
	dryRunFlag(c, &o)
	p.signing(c)
	return c
}
