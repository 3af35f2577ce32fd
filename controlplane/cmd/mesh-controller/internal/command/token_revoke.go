package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Let nobody enrol with a token any more",
		Long: `End a token by its id, which is no secret. Nodes that enrolled with it stay; to
take a node's credentials away, use "mesh-controller revoke NODE".`,
		Example: "  mesh-controller token revoke 3f9c2a7be01d4458",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return ask(c.Context(), a, admin.TokenRevoke.Ask, admin.Ref{Ref: args[0]}, func(t admin.TokenRevoked) error {
				if t.Already {
					a.say("token %q was revoked already, %s", t.ID, ago(t.Revoked))
				} else {
					a.say("token %q is revoked", t.ID)
				}
				return nil
			})
		},
	}
}
