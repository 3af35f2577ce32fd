package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
)

func (p *program) reconcile() *cobra.Command {
	return &cobra.Command{
		Use:   "reconcile",
		Short: "Look at everything now, undo drift, and start again what has failed",
		Long: `Look at everything that is declared now, without waiting for the timer: drift is
undone, and a process that was halted after too many failures is started again.

On a node this changes nothing about what is declared: that comes from the mesh.`,
		Example: "  mesh-host reconcile\n  mesh-host reconcile --json",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.ask(c.Context(), func(h service.Host) error {
				r, err := h.Pass(c.Context())
				if err != nil {
					return fmt.Errorf("cannot reconcile: %w", err)
				}
				return p.reported(r)
			})
		},
	}
}
