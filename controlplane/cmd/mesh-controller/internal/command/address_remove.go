package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) addressRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "remove HOST:PORT",
		Short:   "take an address out of the list",
		Long:    `remove takes an address out of the list. Tokens that name it keep naming it.`,
		Example: "  mesh-controller address remove 192.0.2.7:7443",
		Args:    exactly("HOST:PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.askAddress(c.Context(), args[0], admin.AddressRemove.Ask); err != nil {
				return err
			}
			a.say("address %q is out of the list", args[0])
			return nil
		},
	}
}
