package command

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func (p *program) apply() *cobra.Command {
	last := false
	c := &cobra.Command{
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
				if err := p.mayEnd(c.Context(), h, doc, last); err != nil {
					return fmt.Errorf("cannot apply %q: %w", args[0], err)
				}
				r, err := h.Apply(c.Context(), doc)
				if err != nil {
					return fmt.Errorf("cannot apply %q: %w", args[0], err)
				}
				return p.reported(r)
			})
		},
	}
	c.Flags().BoolVar(&last, "last", false, "take the control plane of this machine away as well")
	return c
}

// mayEnd refuses a declaration that takes the control plane of this machine away,
// unless that is meant. Where none ever ran nothing is looked at for it.
func (p *program) mayEnd(ctx context.Context, h service.Host, doc []byte, last bool) error {
	l, err := p.layout()
	if err != nil || last {
		return err
	}
	if _, err := os.Lstat(l.ControllerState()); err != nil {
		return nil
	}
	steps, err := h.Plan(ctx, doc)
	if err != nil {
		return nil // Apply says it too
	}
	for _, s := range steps {
		if w := warning(s); w != "" {
			return fault.Refusedf("it would remove %s: %s", s.Key, w).Hint("declare it as well, or say --last")
		}
	}
	return nil
}
