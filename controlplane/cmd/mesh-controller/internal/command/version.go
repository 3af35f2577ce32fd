package command

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Long: `Print the version of this binary. The one that serves may be another:
"mesh-controller status" says which.`,
		Example: "  mesh-controller version\n  mesh-controller version --json",
		RunE: func(*cobra.Command, []string) error {
			arch := bundle.Architecture(runtime.GOARCH)
			if a.json {
				return cli.JSON(a.std.Out, map[string]string{
					"version": version.Running(), "architecture": arch, "go": runtime.Version(),
				})
			}
			_, err := fmt.Fprintf(a.std.Out, "mesh-controller %s linux/%s\n", version.Running(), arch)
			return err
		},
	}
}
