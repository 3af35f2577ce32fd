package main

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/repository"
)

func (p *program) repoAddCommand() *cobra.Command {
	var o repository.Options
	c := &cobra.Command{
		Use:   "add REPO PACKAGE…",
		Short: "Add signed packages to a repository",
		Long: "Add packages, each with its signature beside it, to the repository in the\n" +
			"directory REPO, which is made when it is not there. All are added or none. A\n" +
			"package that is not signed by a trusted key, is not what its name says, or is\n" +
			"there already with other bytes is refused. Of each name the newest is listed,\n" +
			"and the newest N files stay.",
		Example: "  mesh-release repo add --keys keys repo/x86_64 dist/*.pkg.tar.zst\n" +
			"  mesh-release repo add --keys keys --keep 5 repo/x86_64 web-1.2-1-any.pkg.tar.zst",
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if o.Keep < 1 {
				return fault.Usagef("cannot keep %d versions", o.Keep).Hint("give --keep 1 or more")
			}
			if err := p.repoSigning(&o); err != nil {
				return err
			}
			done, err := repository.Add(c.Context(), args[0], args[1:], o)
			if err != nil {
				return err
			}
			return p.printChange(done)
		},
	}
	c.Flags().IntVar(&o.Keep, "keep", repository.DefaultKeep, "how many versions of each package stay")
	c.Flags().BoolVar(&o.MD5, "md5sum", false, "write MD5SUM as well, as repo-add before 6.1 does; nothing needs it")
	dryRunFlag(c, &o)
	p.signing(c)
	return c
}
