package command

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func (a *app) declare() *cobra.Command {
	var on []string
	c := &cobra.Command{
		Use:   "declare NAME FILE",
		Short: "make or change a module",
		Long: `declare makes the declaration in FILE ("-" is standard input) the module NAME,
present on the nodes that one of the --on rules picks:

  every           every node
  node=N          the node of that name
  tag=T           nodes with that tag
  profile.KEY=V   nodes whose profile says so (architecture, distribution, …)

Without --on a module that is there keeps its place, and a new one is present
nowhere. What two modules would both declare on one node is refused, and so is
content that is not in the content store. Declaring the same again does nothing.`,
		Example: `  mesh-controller declare motd motd.json --on every
  mesh-controller declare web web.json --on tag=web --on node=spare1`,
		Args: exactly("NAME", "FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			doc, err := a.readDeclaration(args[1])
			if err != nil {
				return err
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			ch, err := admin.Declare.Ask(c.Context(), cl, admin.Declaration{Name: args[0], Document: doc, Placement: on})
			if err != nil {
				return err
			}
			if a.json {
				return cli.JSON(a.std.Out, ch)
			}
			if ch.Changed {
				a.say("module %q is declared, version %d: %d nodes get a new declaration", args[0], ch.Version, len(ch.Nodes))
			} else {
				a.say("module %q is so already, version %d", args[0], ch.Version)
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&on, "on", nil, "where it is present: `RULE` (may be repeated; one must hold)")
	return c
}

// readDeclaration reads a file, or standard input, and parses it here, so that
// what is wrong with it is said without a control plane too.
func (a *app) readDeclaration(path string) ([]byte, error) {
	in := a.std.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fault.Failedf("cannot read the declaration: %w", err)
		}
		defer f.Close()
		in = f
	}
	doc, err := io.ReadAll(io.LimitReader(in, declaration.MaxSize+1))
	if err != nil {
		return nil, fault.Failedf("cannot read the declaration: %w", err)
	}
	_, err = declaration.Parse(doc)
	return doc, err
}
