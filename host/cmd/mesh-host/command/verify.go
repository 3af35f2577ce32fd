package command

import (
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// verified is one file that verified.
type verified struct {
	File    string         `json:"file"`
	Digest  digest.Digest  `json:"digest"`
	Signers []trust.Signer `json:"signers"`
}

func (p *program) verify() *cobra.Command {
	var o service.Override
	c := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Check who signed a bundle, or a file with its signature beside it",
		Long: `Check each FILE against what this machine trusts and say who signed it: a bundle
(*.bundle.tar) whole, any other file by its signature in FILE.sigstore.json.
Exits 3 when one does not verify.`,
		Example: "  mesh-host verify nox-mesh-1.0.0-linux-x86_64.bundle.tar SHA256SUMS",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			policy, err := p.policy(c.Context(), o)
			if err != nil {
				return err
			}
			var out []verified
			for _, name := range args {
				v := verified{File: name}
				if strings.HasSuffix(name, ".bundle.tar") || name == "-" {
					var info *bundle.Info
					in, done, oerr := p.open(name)
					if err = oerr; err == nil {
						if info, err = bundle.Read(c.Context(), in, bundle.Options{Policy: policy}); err == nil {
							v.Digest, v.Signers = info.Digest, info.Signers
						}
						done()
					}
				} else {
					v.Digest, v.Signers, err = trust.VerifyFile(name, policy)
				}
				if err != nil {
					return fmt.Errorf("cannot verify %q: %w", name, err)
				}
				out = append(out, v)
			}
			return p.print(out, func() error {
				var rows [][]string
				for _, v := range out {
					rows = append(rows, []string{v.File, signedBy(v.Signers), v.Digest.String()})
				}
				return cli.Table(p.std.Out, []string{"FILE", "SIGNED BY", "DIGEST"}, rows)
			})
		},
	}
	trustFlags(c, &o)
	return c
}
