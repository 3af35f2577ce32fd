// Package command is the command line of mesh-controller: one file a command.
//
// `serve` is the control plane; every other command asks the one that is
// running, over its socket, and prints what it says. `token inspect` asks
// nobody. Data goes to standard output; what was done is said on standard
// error, and not at all with --quiet.
package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// app is what the commands share.
type app struct {
	std                  cli.Stdio
	root                 string
	json, quiet, verbose bool
}

// Run runs the command that args say.
func Run(ctx context.Context, args []string, std cli.Stdio) error {
	a := &app{std: std}
	root := &cobra.Command{
		Use:   "mesh-controller",
		Short: "the control plane of a mesh",
		Long: `mesh-controller admits machines to a mesh, says what each of them shall be, and
hears what each of them did. One process on one machine serves; the other
commands ask it.`,
		Example: `  mesh-controller serve
  mesh-controller token create | ssh web1 sudo mesh-host enrol -
  mesh-controller declare motd motd.json --on every`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fault.Usagef("cannot run %q: %w", c.CommandPath(), err).Hint("run `%s --help`", c.CommandPath())
	})
	f := root.PersistentFlags()
	f.StringVar(&a.root, "root", "", "every path, sockets included, is under `DIR` (or NOX_ROOT)")
	f.BoolVar(&a.json, "json", false, "print data as JSON")
	f.BoolVar(&a.quiet, "quiet", false, "do not say what was done")
	f.BoolVar(&a.verbose, "verbose", false, "say more")
	root.AddCommand(
		a.serve(), a.token(), a.address(), a.nodes(), a.show(), a.declare(), a.undeclare(), a.approve(), a.revoke(),
		a.events(), a.status(),
	)
	return root.ExecuteContext(ctx)
}

// group makes a command that only has others below it.
func group(c *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	c.Args = noCommand
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.AddCommand(subs...)
	return c
}

func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fault.Usagef("%q has no command %q", c.CommandPath(), args[0]).Hint("run `%s --help`", c.CommandPath())
}

// exactly wants as many arguments as there are names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := "no arguments"
		if len(names) > 0 {
			want = strings.Join(names, " ")
		}
		return fault.Usagef("%q takes %s, not %d arguments", c.CommandPath(), want, len(args)).
			Hint("run `%s --help`", c.CommandPath())
	}
}

// client returns the way to the control plane that is running.
func (a *app) client() (*admin.Client, error) {
	l, err := layout.New(a.root)
	if err != nil {
		return nil, err
	}
	return admin.NewClient(l.ControllerSocket()), nil
}

// say tells a person what was done.
func (a *app) say(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintln(a.std.Err, cli.OneLine(fmt.Sprintf(format, args...)))
	}
}

// table prints rows; what machines said of themselves cannot drive a terminal.
func (a *app) table(header []string, rows [][]string) error {
	for _, r := range rows {
		for i := range r {
			if r[i] = cli.OneLine(r[i]); r[i] == "" {
				r[i] = "-"
			}
		}
	}
	return cli.Table(a.std.Out, header, rows)
}
