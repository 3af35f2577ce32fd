package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
)

func (p *program) apply() *cobra.Command {
	return &cobra.Command{
		Use:   "apply FILE",
		Short: "Make this machine what a declaration says",
		Long: `Make this machine what the declaration in FILE says. The declaration is
complete: what the host owns and FILE does not name is removed.

This is for a machine that is in no mesh; a node's declaration comes from its
mesh, and apply is refused there.`,
		Example: "  mesh-host plan declaration.json\n  mesh-host apply declaration.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			doc, err := p.document(c.Context(), args[0])
			if err != nil {
				return err
			}
			return p.ask(c.Context(), func(h service.Host) error {
				r, err := h.Apply(c.Context(), doc)
				if err != nil {
					return fmt.Errorf("cannot apply %q: %w", args[0], err)
				}
				return p.reported(r)
			})
		},
	}
}
