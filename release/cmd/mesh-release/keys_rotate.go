package main

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
)

func (p *program) keysRotateCommand() *cobra.Command {
	var what keys.Rotation
	c := &cobra.Command{
		Use:   "rotate DIR",
		Short: "Make new keys and the next release root, which names them",
		Long: `Make new keys in DIR and the next release root, signed by the root key that signs
now, and by the new one when that is what is made. Needs the root key.

--release  the new release key signs from now on; the old one is still believed,
           until "keys revoke".
--package  the new package key is announced: it is in the root and the keyring.
           Ship a release, then have it sign by "keys promote --shipped".
--root     the new root key replaces the old one.

After a kill, run it again with the same flags.`,
		Example: "  mesh-release keys rotate keys --package",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			defer p.forget()
			p.warnOfSeen(args[0])
			s, err := keys.Rotate(args[0], what, p.passphrase, clock.System.Now())
			if err != nil {
				return err
			}
			return p.printKeys(s)
		},
	}
	c.Flags().BoolVar(&what.Release, "release", false, "make a new release key")
	c.Flags().BoolVar(&what.Package, "package", false, "make and announce the next package key")
	c.Flags().BoolVar(&what.Root, "root", false, "make a new root key")
	p.passphraseFlag(c)
	return c
}

func (p *program) keysRevokeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "revoke DIR ID",
		Short: "Make the next release root, by which a key never counts again",
		Long: `Make the next release root, by which the release or package key ID never counts
again, whatever it signed and when. The key that signs now cannot be revoked
before there is another. Needs the root key.`,
		Example: "  mesh-release keys revoke keys 0123456789abcdef0123456789abcdef01234567",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			defer p.forget()
			p.warnOfSeen(args[0])
			s, err := keys.Revoke(args[0], args[1], p.passphrase)
			if err != nil {
				return err
			}
			return p.printKeys(s)
		},
	}
	p.passphraseFlag(c)
	return c
}

func (p *program) keysExportCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "export DIR",
		Short: "Write what a verifier needs, and nothing secret, into a directory",
		Long: `Write the release roots, the public keys and the keyring for pacman-key(8) of DIR
into a directory. It can be exported to again; where anything is in the way that
another export of these keys did not write, nothing is written.`,
		Example: "  mesh-release keys export keys --out public",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				return fault.Usagef("cannot export keys: no directory is named").Hint("give --out DIR")
			}
			names, err := keys.Export(args[0], out)
			if err != nil {
				return err
			}
			if p.json {
				return cli.JSON(p.std.Out, map[string]any{"directory": out, "files": names})
			}
			return p.say("%d files in %s", len(names), out)
		},
	}
	c.Flags().StringVar(&out, "out", "", "directory to write to")
	return c
}
