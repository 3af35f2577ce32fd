package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
)

func (a *app) meshRoot() *cobra.Command {
	return group(&cobra.Command{
		Use:   "mesh-root",
		Short: "The root by which nodes recognise this mesh",
	}, a.meshRootRotate())
}

func (a *app) meshRootRotate() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "Make a new mesh root, signed by the one there is",
		Long: `Make a new mesh root, signed by the one there is. Nodes learn it at their next
contact, however long that is away, and have their certificates renewed under it;
tokens that were made before go on being good. Links are closed once for it, and come
back.

The old key signs nothing any more, but a node that has not come back yet still takes
its word: rotating is no remedy for a root that was stolen. A backup of before brings
the old root back. It can be done six times.`,
		Example: "  mesh-controller mesh-root rotate",
		RunE: func(c *cobra.Command, _ []string) error {
			return ask(c.Context(), a, admin.RotateRoot.Ask, admin.None{}, func(r admin.RootRotated) error {
				a.say("the mesh root was %s, and is %s now", r.Before, r.Pin)
				return nil
			})
		},
	}
}
