package main

import (
	"cmp"
	"crypto"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (p *program) bundleResignCommand() *cobra.Command {
	var out, dir string
	var add bool
	c := &cobra.Command{
		Use:   "resign BUNDLE",
		Short: "Sign a bundle that is there with another key",
		Long: `Sign a bundle that is there with the release key of --keys: its signatures and the
release roots it carries change, what was signed and all content stay as they are,
to the byte. The bundle must verify first.

The new signature takes the place of the others. With --add those of other keys
that still may sign stay beside it, so that machines that know only the old key,
and machines that know only the new one, both take it. What a revoked key signed
is dropped in any case.`,
		Example: "  mesh-release keys rotate keys --release\n" +
			"  mesh-release bundle resign nox-mesh-1.0.0-linux-x86_64.bundle.tar --keys keys --add",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := p.signer()
			if err != nil {
				return err
			}
			policy := s.Policy
			if dir != "" {
				if policy, err = trust.LoadDir(dir); err != nil {
					return err
				}
			}
			to := cmp.Or(out, args[0])
			told, shown := p.telling(args[0])
			done, err := bundle.Resign(c.Context(), args[0], to, bundle.Resigning{
				Policy: policy, Signers: []crypto.Signer{s.Key}, Add: add, Roots: s.Roots, Progress: told,
			})
			shown()
			if err != nil {
				return err
			}
			if p.json {
				return cli.JSON(p.std.Out, done)
			}
			if err := p.sayBundle(to, done.Info); err != nil {
				return err
			}
			for _, k := range done.Signers {
				if err := p.say("signed by %s", signedBy(k)); err != nil {
					return err
				}
			}
			if done.Dropped == 0 {
				return nil
			}
			return p.say("%s dropped", cli.Count(done.Dropped, "signature", "signatures"))
		},
	}
	c.Flags().BoolVar(&add, "add", false, "keep the signatures of other keys that still may sign")
	c.Flags().StringVar(&out, "out", "", "file to write (default: in the place of BUNDLE)")
	c.Flags().StringVar(&dir, "trust", "", "directory of release roots and public keys that BUNDLE must verify under (default: --keys)")
	p.signing(c)
	return c
}

// signedBy names a key, and the release root that names it.
func signedBy(s trust.Signer) string {
	if s.Root > 0 {
		return fmt.Sprintf("%s (release root %d)", s.Key, s.Root)
	}
	return s.Key
}
