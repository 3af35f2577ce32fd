package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
)

func (p *program) keysPromoteCommand() *cobra.Command {
	var why keys.Promotion
	c := &cobra.Command{
		Use:   "promote DIR",
		Short: "Have the next package key sign from now on",
		Long: `Have the package key that "keys rotate --package" announced sign from now on. A
machine that has not got a keyring with it refuses what it signs, the next
keyring included. So the keyring package of a release that is out is looked at:
it must carry that key, and be signed by another.`,
		Example: "  mesh-release keys promote keys --shipped dist/arch/x86_64/nox-mesh-keyring-1.1.0-1-any.pkg.tar.zst",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			why.Now = clock.System.Now()
			s, err := keys.Promote(args[0], why)
			if err != nil {
				return err
			}
			if why.Unshipped && !p.quiet {
				fmt.Fprintf(p.std.Err, "warning: a machine whose keyring does not have %s refuses every package from now on\n", s.Package)
			}
			return p.printKeys(s)
		},
	}
	c.Flags().StringVar(&why.Shipped, "shipped", "", "keyring package of a release that is out, with its .sig beside it")
	c.Flags().BoolVar(&why.Unshipped, "unshipped", false, "no machine has an older keyring: promote without a look")
	return c
}
