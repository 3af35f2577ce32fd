package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

func (a *app) declare() *cobra.Command {
	var q admin.Declaration
	c := &cobra.Command{
		Use:   "declare NAME FILE",
		Short: "Make or change a module",
		Long: `Make the declaration in FILE ("-" is standard input) the module NAME, present on
the nodes that one of the --on rules picks:

  every           every node
  node=N          the node of that name
  tag=T           nodes with that tag
  profile.KEY=V   nodes whose profile says so (architecture, distribution, …)

Without --on a module that is there keeps its place, and a new one is present
nowhere; one that a machine brought along needs --on. What two modules would both declare on one node is refused, and so is
content that is not in the content store. Declaring the same again does nothing.

--dry-run says what would appear, change and go on each node, and does nothing.
What would take the control plane itself away is refused without --last.`,
		Example: `  mesh-controller declare motd motd.json --on every --dry-run
  mesh-controller declare motd motd.json --on every
  mesh-controller declare web web.json --on tag=web --on node=spare1`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) (err error) {
			q.Name = args[0]
			if q.Document, err = a.readDeclaration(c.Context(), args[1]); err != nil {
				return err
			}
			return ask(c.Context(), a, admin.Declare.Ask, q, func(ch module.Change) error {
				if q.DryRun {
					return a.printPlan(q.Name, ch)
				}
				a.sayDeclared(q.Name, ch)
				return nil
			})
		},
	}
	c.Flags().StringArrayVar(&q.Placement, "on", nil, "where it is present: `RULE` (may be repeated; one must hold)")
	c.Flags().BoolVar(&q.DryRun, "dry-run", false, "say what would change on which node, and change nothing")
	lastFlag(c, &q.Last)
	return c
}

func (a *app) sayDeclared(name string, ch module.Change) {
	if !ch.Changed {
		a.say("module %q was declared like this already, version %d: nothing changes; %s", name, ch.Version, presentWords(ch))
		return
	}
	a.say("module %q is declared, version %d, %s; %s a new declaration",
		name, ch.Version, presentWords(ch), cli.Count(len(ch.Nodes), "node gets", "nodes get"))
}

// presentWords says on how many nodes a module is.
func presentWords(ch module.Change) string {
	switch {
	case ch.Present > 0:
		return "present on " + cli.Count(ch.Present, "node", "nodes")
	case len(ch.Placement) == 0:
		return "present on no node yet (--on says where)"
	}
	return "present on no node yet"
}

// printPlan prints what a declaration would change: one line a thing.
func (a *app) printPlan(name string, ch module.Change) error {
	var rows [][]string
	for _, d := range ch.Plan {
		if len(d.Appear)+len(d.Change)+len(d.Go) == 0 {
			rows = append(rows, []string{d.Node, "keeps everything", ""})
		}
		for _, x := range []struct {
			what string
			keys []string
		}{{"appears", d.Appear}, {"changes", d.Change}, {"goes", d.Go}} {
			for _, key := range x.keys {
				rows = append(rows, []string{d.Node, x.what, key})
			}
		}
	}
	switch {
	case !ch.Changed:
		a.say("module %q is declared like this already, version %d: nothing would change", name, ch.Version)
	default:
		a.say("module %q would be version %d, %s; %s would get a new declaration",
			name, ch.Version, presentWords(ch), cli.Count(len(ch.Nodes), "node", "nodes"))
	}
	if len(rows) == 0 {
		return nil
	}
	return a.table([]string{"NODE", "WHAT", "RESOURCE"}, rows)
}

// readDeclaration reads a file, or standard input, and parses it here, so that
// what is wrong with it is said without a control plane too.
func (a *app) readDeclaration(ctx context.Context, path string) ([]byte, error) {
	in, done, err := input.Open(ctx, path, a.std.In)
	if err != nil {
		return nil, fault.Failedf("cannot read the declaration %q: %w", path, err)
	}
	defer done()
	doc, err := io.ReadAll(io.LimitReader(in, declaration.MaxSize+1))
	if err != nil {
		return nil, fault.Failedf("cannot read the declaration: %w", err)
	}
	if _, err := declaration.Parse(doc); err != nil {
		return nil, fmt.Errorf("cannot read the declaration: %w", err)
	}
	return doc, nil
}
