package command

import "github.com/spf13/cobra"

func (a *app) token() *cobra.Command {
	return group(&cobra.Command{
		Use:   "token",
		Short: "Make, list, revoke and look at enrolment tokens",
		Long: `Make, list, revoke and look at enrolment tokens. A token lets a machine become a node. It names the mesh, where its control
plane is and how to recognise it, and carries a secret for a short time. The
control plane keeps no secret of it.`,
		Example: `  mesh-controller token create --ttl 10m
  mesh-controller token list`,
	}, a.tokenCreate(), a.tokenList(), a.tokenRevoke(), a.tokenInspect())
}
