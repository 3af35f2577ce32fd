package command

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

func (p *program) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Example: "  mesh-host version --json",
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": version.Running(), "architecture": bundle.Architecture(runtime.GOARCH), "go": runtime.Version()}
			return p.print(v, func() error {
				_, err := fmt.Fprintf(p.std.Out, "mesh-host %s linux/%s\n", version.Running(), v["architecture"])
				return err
			})
		},
	}
}
