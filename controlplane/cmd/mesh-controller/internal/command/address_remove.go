package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) addressRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "remove HOST:PORT",
		Short:   "Take an address out of the list",
		Long:    `Take an address out of the list. Tokens that name it keep naming it.`,
		Example: "  mesh-controller address remove 192.0.2.7:7443",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return ask(c.Context(), a, admin.AddressRemove.Ask, admin.Address{Address: args[0]}, func(admin.Addresses) error {
				a.say("address %q is out of the list", args[0])
				return nil
			})
		},
	}
}
