// Package command is the command line of mesh-controller: one file a command.
//
// `serve` is the control plane; the other commands ask the one that is running,
// over its socket, and print what it says. `token inspect` and `version` ask
// nobody. Data goes to standard output; what was done is said on standard
// error, and not at all with --quiet.
package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/internal/manpage"
)

// app is what the commands share.
type app struct {
	std                  cli.Stdio
	root                 string
	json, quiet, verbose bool
	wait                 time.Duration
}

// startTime is how long a control plane may take to start.
const startTime = 30 * time.Second

// Run runs the command that args say.
func Run(ctx context.Context, args []string, std cli.Stdio) error {
	a := &app{std: std}
	root := &cobra.Command{
		Use:   "mesh-controller",
		Short: "Say what the machines of a mesh shall be, and look after who may join it",
		Long: `mesh-controller admits machines to a mesh, says what each of them shall be, and
hears what each of them did. One process on one machine serves; the other
commands ask it.`,
		Example: `  mesh-controller serve
  mesh-controller token create | ssh web1 sudo mesh-host enrol -
  mesh-controller declare motd motd.json --on every`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	f := root.PersistentFlags()
	f.StringVar(&a.root, "root", "", "put every path under this `DIR` (default: NOX_ROOT, else the machine itself)")
	f.DurationVar(&a.wait, "wait", startTime, "how long to wait for a control plane that starts or restarts")
	cli.LoudnessFlags(root, &a.json, &a.quiet, &a.verbose)
	root.AddCommand(
		a.serve(), a.token(), a.join(), a.address(), a.nodes(), a.show(), a.declare(), a.push(), a.undeclare(),
		a.approve(), a.refuse(), a.retire(), a.revoke(), a.backup(), a.restore(), a.meshRoot(),
		a.events(), a.status(), a.version(), manpage.Command(),
	)
	return cli.Execute(ctx, root, args, std)
}

// group makes a command that only has others below it.
func group(c *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.AddCommand(subs...)
	return c
}

// client returns the way to the control plane that is running.
func (a *app) client() (*admin.Client, error) {
	l, err := layout.New(a.root)
	if err != nil {
		return nil, err
	}
	cl := admin.NewClient(l.ControllerSocket())
	cl.Patience = a.wait
	return cl, nil
}

// ask asks the control plane for a verb and prints its answer: as JSON, or as
// text does.
func ask[Q, A any](ctx context.Context, a *app, verb func(context.Context, *admin.Client, Q) (A, error), q Q, text func(A) error) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	answer, err := verb(ctx, cl, q)
	if err != nil {
		return err
	}
	if a.json {
		return cli.JSON(a.std.Out, answer)
	}
	return text(answer)
}

// ago is how tables say when something was.
func ago(t time.Time) string { return cli.Ago(clock.System.Now(), t) }

// say tells a person what was done.
func (a *app) say(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintln(a.std.Err, cli.OneLine(fmt.Sprintf(format, args...)))
	}
}

// table prints rows; what machines said of themselves cannot drive a terminal.
func (a *app) table(header []string, rows [][]string) error {
	for i := range header {
		header[i] = cli.OneLine(header[i])
	}
	for _, r := range rows {
		for i := range r {
			if r[i] = cli.OneLine(r[i]); r[i] == "" {
				r[i] = "-"
			}
		}
	}
	return cli.Table(a.std.Out, header, rows)
}
