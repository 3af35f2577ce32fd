package main

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/repository"
)

func (p *program) repoPublishCommand() *cobra.Command {
	var o repository.Options
	var to, trusted string
	c := &cobra.Command{
		Use:   "publish REPO --to DIR",
		Short: "Verify a repository and put it where a web server serves it",
		Long: "Read and verify every package and signature of a repository, and replace the\n" +
			"directory DIR by it in one rename. DIR must be a repository or not there. No\n" +
			"secret key is needed.",
		Example: "  mesh-release repo publish --trust keys --to /srv/http/x86_64 repo/x86_64",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if to == "" {
				return fault.Usagef("cannot publish: no directory is named").Hint("give --to DIR")
			}
			if err := p.repoTrust(trusted, &o); err != nil {
				return err
			}
			done, err := repository.Publish(c.Context(), args[0], to, o)
			if err != nil {
				return err
			}
			return p.printChange(done)
		},
	}
	c.Flags().StringVar(&to, "to", "", "directory to publish to")
	repoTrustFlags(c, &trusted, &p.keys)
	dryRunFlag(c, &o)
	return c
}

// repoTrustFlags are those of a command that only verifies: a publisher's keys
// do as well, of which only the public ones are read.
func repoTrustFlags(c *cobra.Command, trusted, keys *string) {
	c.Flags().StringVar(trusted, "trust", "", "directory of release roots and public keys")
	c.Flags().StringVar(keys, "keys", "", "the same, of the publisher's keys; no secret one is read")
}
