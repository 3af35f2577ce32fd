package main

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (p *program) signCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "sign FILE",
		Short:   "Sign a file; the signature goes beside it",
		Example: "  mesh-release sign --keys keys notes.txt    # writes notes.txt.sigstore.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := p.signer()
			if err != nil {
				return err
			}
			d, err := s.File(args[0])
			if err != nil {
				return err
			}
			if p.json {
				return cli.JSON(p.std.Out, map[string]string{"file": args[0], "digest": d.String(), "signature": args[0] + trust.SignatureSuffix})
			}
			return p.say("signed %s (%s)", args[0], d)
		},
	}
	p.signing(c)
	return c
}
