package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/repository"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
)

func (p *program) repoCommand() *cobra.Command {
	return group("repo", "Keep a signed pacman repository",
		"  mesh-release repo add --keys keys repo/x86_64 dist/*.pkg.tar.zst\n"+
			"  mesh-release repo publish --trust keys --to /srv/http/x86_64 repo/x86_64",
		p.repoAddCommand(), p.repoRemoveCommand(), p.repoPublishCommand(), p.repoListCommand())
}

// repoSigning fills in what a change of a repository needs.
func (p *program) repoSigning(o *repository.Options) error {
	if p.keys == "" {
		return fault.Usagef("cannot sign the repository: no keys are named").Hint("give --keys DIR")
	}
	if err := p.repoTrust("", o); err != nil {
		return err
	}
	if o.DryRun {
		return nil
	}
	key, err := p.packageKey()
	if err != nil {
		return err
	}
	o.Signer = key
	return nil
}

// repoTrust fills in what a look at a repository needs: public keys.
func (p *program) repoTrust(dir string, o *repository.Options) error {
	if dir = cmp.Or(dir, p.keys); dir == "" {
		return fault.Usagef("cannot read the repository: nobody is trusted").Hint("give --trust DIR")
	}
	policy, err := trust.LoadDir(dir)
	if err != nil {
		return err
	}
	o.Verifier, o.Note = signing.Verifier{Policy: policy}, p.note
	return nil
}

func (p *program) printChange(o repository.Outcome) error {
	if p.json {
		return cli.JSON(p.std.Out, o)
	}
	for _, f := range o.Added {
		if err := p.say("+ %s", f); err != nil {
			return err
		}
	}
	for _, f := range o.Dropped {
		if err := p.say("- %s", f); err != nil {
			return err
		}
	}
	return p.say("%d listed", o.Listed)
}

func dryRunFlag(c *cobra.Command, o *repository.Options) {
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "check everything, change nothing, say what would change")
}
