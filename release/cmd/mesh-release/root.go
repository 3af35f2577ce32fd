package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/passphrase"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

// A program is what all commands share: where they read and write, and the
// flags that mean the same everywhere.
type program struct {
	std                  cli.Stdio
	json, quiet, verbose bool
	keys                 string
	passphraseFile       string
	// ask gets the passphrase, twice where it is new to us.
	ask func(confirm bool) ([]byte, error)
	// secret is the passphrase while keys are opened (forget).
	secret []byte
}

func run(ctx context.Context, args []string, std cli.Stdio) error {
	return cli.Execute(ctx, commands(ctx, std), args, std)
}

// commands is the tree of all commands.
func commands(ctx context.Context, std cli.Stdio) *cobra.Command {
	p := &program{std: std}
	p.ask = func(confirm bool) ([]byte, error) {
		return passphrase.Read(ctx, passphrase.Source{File: p.passphraseFile, In: std.In}, confirm)
	}
	root := &cobra.Command{
		Use:     "mesh-release",
		Short:   "Build, sign and check releases of nox-mesh",
		Example: "  mesh-release keys init keys\n  mesh-release build --version 1.0.0 --keys keys --out dist",
		Version: version.Running(),
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cli.LoudnessFlags(root, &p.json, &p.quiet, &p.verbose)
	root.AddCommand(p.keysCommand(), p.buildCommand(), p.packCommand(), p.bundleCommand(), p.signCommand(), p.verifyCommand(), p.rebuildCommand(), p.repoCommand())
	return root
}

// say tells a person what was done, in one line; data is printed without it.
func (p *program) say(format string, args ...any) error {
	if p.quiet {
		return nil
	}
	return p.print(format, args...)
}

// print prints one line for a person. It is the one place where such lines are made:
// the name of a file must not forge another.
func (p *program) print(format string, args ...any) error {
	_, err := fmt.Fprintln(p.std.Out, cli.OneLine(fmt.Sprintf(format, args...)))
	return err
}

func (p *program) log() *slog.Logger { return cli.Log(p.std.Err, p.verbose) }

// group is a command that only holds others.
func group(use, short, example string, sub ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(sub...)
	return c
}
