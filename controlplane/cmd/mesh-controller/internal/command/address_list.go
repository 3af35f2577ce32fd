package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) addressList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the addresses",
		Long:    `List the addresses that new tokens and nodes are given, one a line.`,
		Example: "  mesh-controller address list",
		RunE: func(c *cobra.Command, _ []string) error {
			return ask(c.Context(), a, admin.AddressList.Ask, admin.None{}, a.printAddresses)
		},
	}
}
