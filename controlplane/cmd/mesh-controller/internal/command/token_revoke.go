package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "let nobody enrol with a token any more",
		Long: `revoke ends a token by its id, which is no secret. Nodes that enrolled with it
stay; to take a node's credentials away, use "mesh-controller revoke NODE".`,
		Example: "  mesh-controller token revoke 3f9c2a7be01d4458",
		Args:    exactly("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			if _, err := admin.TokenRevoke.Ask(c.Context(), cl, admin.Ref{Ref: args[0]}); err != nil {
				return err
			}
			a.say("token %q is revoked", args[0])
			return nil
		},
	}
}
