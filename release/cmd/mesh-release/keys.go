package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
)

func (p *program) keysCommand() *cobra.Command {
	return group("keys", "Make the publisher's keys", "  mesh-release keys init keys", p.keysInitCommand())
}

func (p *program) keysInitCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "init DIR",
		Short: "Make a root key, a release key and the first release root",
		Long: "Make a root key, a release key and the first release root in DIR. The keys are\n" +
			"encrypted by a passphrase. Keep root.key offline: no build needs it.",
		Example: "  mesh-release keys init --passphrase-file secret keys",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			passphrase, err := keys.Passphrase(p.passphraseFile, true)
			if err != nil {
				return err
			}
			fingerprint, err := keys.Init(args[0], passphrase)
			if err != nil {
				return err
			}
			if p.json {
				return cli.JSON(p.std.Out, map[string]string{"directory": args[0], "root": "sha256:" + fingerprint})
			}
			_, err = fmt.Fprintf(p.std.Out, "release root 1, sha256:%s\n", fingerprint)
			return err
		},
	}
	p.passphraseFlag(c)
	return c
}
