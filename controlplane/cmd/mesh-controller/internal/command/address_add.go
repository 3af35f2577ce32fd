package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) addressAdd() *cobra.Command {
	return &cobra.Command{
		Use:   "add HOST:PORT",
		Short: "Add an address to the list",
		Long: `Add an address to the list that new tokens and nodes are given. An address of
this machine on which the control plane does not listen is refused; a name, or
another machine's address, is taken at your word.`,
		Example: "  mesh-controller address add mesh.example.com:7443",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return ask(c.Context(), a, admin.AddressAdd.Ask, admin.Address{Address: args[0]}, func(as admin.Addresses) error {
				if as.Changed {
					a.say("address %q is in the list", args[0])
				} else {
					a.say("address %q was in the list already", args[0])
				}
				return nil
			})
		},
	}
}
