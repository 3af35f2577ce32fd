package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) addressAdd() *cobra.Command {
	return &cobra.Command{
		Use:   "add HOST:PORT",
		Short: "add an address to the list",
		Long: `add puts an address into the list that new tokens and nodes are given. An
address of this machine on which the control plane does not listen is refused; a
name, or another machine's address, is taken at your word.`,
		Example: "  mesh-controller address add mesh.example.com:7443",
		Args:    exactly("HOST:PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.askAddress(c.Context(), args[0], admin.AddressAdd.Ask); err != nil {
				return err
			}
			a.say("address %q is in the list", args[0])
			return nil
		},
	}
}
