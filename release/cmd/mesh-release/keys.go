package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
)

func (p *program) keysCommand() *cobra.Command {
	return group("keys", "Make and change the publisher's keys",
		"  mesh-release keys init keys\n  mesh-release keys export keys --out public",
		p.keysInitCommand(), p.keysShowCommand(), p.keysRotateCommand(), p.keysPromoteCommand(), p.keysRevokeCommand(), p.keysExportCommand())
}

func (p *program) keysInitCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "init DIR",
		Short: "Make a root key, a release key, a package key and the first release root",
		Long: "Make a root key, a release key, a package key (OpenPGP) and the first release\n" +
			"root in DIR. The keys are encrypted by a passphrase. Keep root.key offline: no\n" +
			"build needs it.",
		Example: "  mesh-release keys init --passphrase-file secret keys",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			passphrase, err := p.ask(true)
			if err != nil {
				return err
			}
			defer clear(passphrase)
			fingerprint, err := keys.Init(args[0], passphrase, clock.System.Now())
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

func (p *program) keysShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show DIR",
		Short:   "Say which keys sign now, and which package key is next",
		Example: "  mesh-release keys show keys",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := keys.Inspect(args[0])
			if err != nil {
				return err
			}
			return p.printKeys(s)
		},
	}
}

// printKeys says who signs what.
func (p *program) printKeys(s keys.State) error {
	if p.json {
		return cli.JSON(p.std.Out, s)
	}
	rows := [][]string{
		{"release root", fmt.Sprintf("%d, sha256:%s", s.Version, s.Root)},
		{"root key", s.RootKey}, {"release key", s.ReleaseKey}, {"package key", s.Package},
	}
	if s.Next != "" {
		rows = append(rows, []string{"next package key", s.Next})
	}
	for _, id := range s.Revoked {
		rows = append(rows, []string{"revoked", id})
	}
	return cli.Table(p.std.Out, []string{"WHAT", "NOW"}, rows)
}
