package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/version"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
)

// A program is what all commands share: where they read and write, and the
// flags that mean the same everywhere.
type program struct {
	std            cli.Stdio
	json           bool
	keys           string
	passphraseFile string
	secret         []byte
}

func run(ctx context.Context, args []string, std cli.Stdio) error {
	p := &program{std: std}
	root := &cobra.Command{
		Use:           "mesh-release",
		Short:         "Build, sign and check releases of nox-mesh",
		Example:       "  mesh-release keys init keys\n  mesh-release build --version 1.0.0 --keys keys --out dist",
		Version:       version.Running(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.PersistentFlags().BoolVar(&p.json, "json", false, "print data as JSON")
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetArgs(args)
	root.AddCommand(p.keysCommand(), p.buildCommand(), p.packCommand(), p.bundleCommand(), p.signCommand(), p.verifyCommand(), p.rebuildCommand(), p.repoCommand())
	wrongUsage(root)
	return root.ExecuteContext(ctx)
}

// wrongUsage makes what cobra itself finds wrong a fault of kind Usage.
func wrongUsage(c *cobra.Command) {
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(c, err) })
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usage(c, err)
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrongUsage(sub)
	}
}

func usage(c *cobra.Command, err error) error {
	return fault.Usagef("cannot run %q: %w", c.CommandPath(), err).Hint("see %s --help", c.CommandPath())
}

// group is a command that only holds others.
func group(use, short, example string, sub ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(sub...)
	return c
}

// signing adds the flags of a command that signs.
func (p *program) signing(c *cobra.Command) {
	c.Flags().StringVar(&p.keys, "keys", "", "directory of the publisher's keys")
	p.passphraseFlag(c)
}

func (p *program) passphraseFlag(c *cobra.Command) {
	c.Flags().StringVar(&p.passphraseFile, "passphrase-file", "", "file with the passphrase (or NOX_PASSPHRASE_FILE; else it is asked for)")
}

// signer opens the release key and reads the chain of roots beside it.
func (p *program) signer() (*signing.Signer, error) {
	if p.keys == "" {
		return nil, fault.Usagef("cannot sign: no keys are named").Hint("give --keys DIR")
	}
	roots, err := keys.Roots(p.keys)
	if err != nil {
		return nil, err
	}
	key, err := keys.Open(p.keys, keys.ReleaseKey, p.passphrase)
	if err != nil {
		return nil, err
	}
	return signing.New(key, nil, roots)
}

// publisher opens all keys that a release takes.
func (p *program) publisher() (*signing.Signer, error) {
	s, err := p.signer()
	if err != nil {
		return nil, err
	}
	s.Packages, err = p.packageKey()
	return s, err
}

// packageKey opens the key that signs for pacman.
func (p *program) packageKey() (signing.Packages, error) {
	key, err := keys.OpenPackage(p.keys, p.passphrase)
	if err != nil {
		return nil, err
	}
	return signing.With(key), nil
}

// passphrase asks once, however many keys it opens.
func (p *program) passphrase() ([]byte, error) {
	if p.secret == nil {
		var err error
		if p.secret, err = keys.Passphrase(p.passphraseFile, false); err != nil {
			return nil, err
		}
	}
	return slices.Clone(p.secret), nil
}
