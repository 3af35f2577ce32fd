package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) addressList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "list the addresses",
		Long:    `list prints the addresses that new tokens and nodes are given, one a line.`,
		Example: "  mesh-controller address list",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			as, err := admin.AddressList.Ask(c.Context(), cl, admin.None{})
			if err != nil {
				return err
			}
			return a.printAddresses(as)
		},
	}
}
