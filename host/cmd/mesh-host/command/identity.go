package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

func (p *program) identity() *cobra.Command {
	c := &cobra.Command{
		Use:   "identity",
		Short: "Who this machine is in its mesh",
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.identityNew())
	return c
}

func (p *program) identityNew() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "new -",
		Short: "Make a copied machine a node of its own",
		Long: `Make this machine, a copy of another that has its identity with it, a node of its
own, with a token of the same mesh. Two machines with one identity are sent nothing
new by the control plane; run this on the copy, and "mesh-controller approve NODE"
for the other one then.

The machine is the node it was until the mesh has admitted it as another. From then
on it has what the mesh declares for that one: what was declared for the other node
alone is removed here.

The token is read as by "mesh-host enrol".`,
		Example: "  mesh-host identity new -            # and paste the token\n  mesh-host identity new --token-file /root/token",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			token, err := p.token(c.Context(), args, file)
			if err != nil {
				return err
			}
			return p.ask(c.Context(), func(h service.Host) error {
				e, err := h.NewIdentity(c.Context(), token)
				if err != nil {
					return fmt.Errorf("cannot make a new identity: %w", err)
				}
				if file != "" && !e.Pending {
					if err := durable.Remove(file); err != nil {
						fmt.Fprintf(p.std.Err, "the token file stays: %v\n", err)
					}
				}
				return p.print(e, func() error {
					if p.quiet {
						return nil
					}
					if e.Pending {
						_, err := fmt.Fprintln(p.std.Out, "pending: a person has to admit this machine (mesh-controller approve); run it again with the same token then")
						return err
					}
					_, err := fmt.Fprintf(p.std.Out, "this machine is node %s (%s) of mesh %s now\n", e.Node, e.NodeID, e.Mesh)
					return err
				})
			})
		},
	}
	c.Flags().StringVar(&file, "token-file", "", "read the token from this `FILE`, which is removed once it is used")
	return c
}
