package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
	"github.com/nox-mesh/nox-mesh/release/internal/repository"
)

func (p *program) repoCommand() *cobra.Command {
	return group("repo", "Keep a signed pacman repository",
		"  mesh-release repo add --keys keys repo/x86_64 dist/*.pkg.tar.zst\n"+
			"  mesh-release repo publish --trust keys --to /srv/http/x86_64 repo/x86_64",
		p.repoAddCommand(), p.repoRemoveCommand(), p.repoPublishCommand(), p.repoListCommand())
}

// repoSigner signs databases with the package key.
type repoSigner struct{ key *keys.PackageKey }

func (s repoSigner) Sign(message io.Reader, date time.Time) ([]byte, error) {
	return keys.SignPackage(s.key, message, date)
}

// repoVerifier takes what the release root in force names for packages.
type repoVerifier struct{ policy *trust.Policy }

func (v repoVerifier) Verify(message io.Reader, signature []byte) error {
	_, err := v.policy.VerifyPackage(message, signature, trust.Times{Clock: clock.System.Now()})
	return err
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
	o.Signer = repoSigner{key}
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
	o.Verifier = repoVerifier{policy}
	return nil
}

func (p *program) printChange(o repository.Outcome) error {
	if p.json {
		return cli.JSON(p.std.Out, o)
	}
	for _, f := range o.Added {
		fmt.Fprintf(p.std.Out, "+ %s\n", f)
	}
	for _, f := range o.Dropped {
		fmt.Fprintf(p.std.Out, "- %s\n", f)
	}
	_, err := fmt.Fprintf(p.std.Out, "%d listed\n", o.Listed)
	return err
}

func dryRunFlag(c *cobra.Command, o *repository.Options) {
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "check everything, change nothing, say what would change")
}
