// Package command is the command line of mesh-host: one file a command. A
// command reads its flags, asks a service.Host, and prints; it decides nothing.
package command

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/internal/manpage"
)

// program is what every command of one call shares.
type program struct {
	std     cli.Stdio
	root    string
	json    bool
	quiet   bool
	verbose bool
}

// Run runs the command line.
func Run(ctx context.Context, args []string, std cli.Stdio) error {
	p := &program{std: std}
	root := &cobra.Command{
		Use:   "mesh-host",
		Short: "Apply declarations to this machine, and look after the service that does",
		Long: `mesh-host makes this machine what its declaration says and keeps it so.

The first node:      mesh-host install
                     mesh-host bootstrap nox-mesh-1.0.0-linux-x86_64.bundle.tar
                     mesh-controller token create | mesh-host enrol -
Every other node:    mesh-host install
                     mesh-host enrol -`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.PersistentFlags().StringVar(&p.root, "root", "", "put every path under this `DIR` (default: NOX_ROOT, else the machine itself)")
	cli.LoudnessFlags(root, &p.json, &p.quiet, &p.verbose)
	root.AddCommand(
		p.install(), p.uninstall(), p.retire(),
		p.bootstrap(), p.enrol(), p.identity(),
		p.status(), p.owned(), p.adopt(), p.history(), p.logs(), p.metrics(), p.profile(),
		p.plan(), p.apply(), p.reconcile(),
		p.verify(), p.bundle(),
		p.schema(), p.run(), p.version(), manpage.Command(),
	)
	return cli.Execute(ctx, root, args, std)
}

func (p *program) layout() (layout.Layout, error) { return layout.New(p.root) }

func (p *program) log() *slog.Logger { return cli.Log(p.std.Err, p.verbose) }

// ask runs f with whoever does the verbs on this machine.
func (p *program) ask(ctx context.Context, f func(h service.Host) error) error {
	l, err := p.layout()
	if err != nil {
		return err
	}
	h, done, err := service.Connect(ctx, service.Config{Layout: l, Clock: clock.System, Log: p.log()})
	if err != nil {
		return err
	}
	err = f(h)
	if cerr := done(); err == nil {
		err = cerr
	}
	return err
}

// print prints v as JSON, or calls text.
func (p *program) print(v any, text func() error) error {
	if p.json {
		return cli.JSON(p.std.Out, v)
	}
	return text()
}

// reported prints what a pass did, and is the fault of one that did not all
// work.
func (p *program) reported(r link.Report) error {
	if err := p.print(r, func() error { return p.printReport(r) }); err != nil {
		return err
	}
	bad, all := 0, 0
	for _, x := range r.Resources {
		switch {
		case !x.Outcome.Good():
			bad++
		case x.Outcome == declaration.Removed || x.Outcome == declaration.Released:
			continue // it is declared no more
		}
		all++
	}
	if bad == 0 {
		return nil
	}
	return fault.Partialf("%d of %d resources are not as declared", bad, all).Hint("mesh-host status says which and why")
}

func (p *program) printReport(r link.Report) error {
	if p.quiet {
		return nil
	}
	var rows [][]string
	for _, x := range r.Resources {
		if x.Outcome == declaration.Unchanged && !p.verbose {
			continue
		}
		rows = append(rows, []string{string(x.Outcome), x.Key, said(x)})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(p.std.Out, "%d resources, all as declared\n", len(r.Resources))
		return err
	}
	return cli.Table(p.std.Out, []string{"OUTCOME", "RESOURCE", "NOTE"}, rows)
}
