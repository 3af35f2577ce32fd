package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (a *app) address() *cobra.Command {
	return group(&cobra.Command{
		Use:   "address",
		Short: "Say where nodes find the control plane",
		Long: `Say where nodes find the control plane. Tokens and nodes are given the addresses
in this list. While it is empty they are given those of the interfaces that have
a default route.`,
		Example: "  mesh-controller address add mesh.example.com:7443\n  mesh-controller address list",
	}, a.addressAdd(), a.addressRemove(), a.addressList())
}

// printAddresses prints what a verb of addresses answered.
func (a *app) printAddresses(as admin.Addresses) error {
	for _, x := range as.Addresses {
		fmt.Fprintln(a.std.Out, cli.OneLine(x))
	}
	if !as.Given && a.verbose {
		a.say("nobody gave an address; these were found on this machine")
	}
	return nil
}
