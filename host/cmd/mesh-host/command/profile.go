package command

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/profile"
)

func (p *program) profile() *cobra.Command {
	return &cobra.Command{
		Use:     "profile",
		Short:   "Show what this machine can run, as the control plane is told",
		Example: "  mesh-host profile --json",
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.layout()
			if err != nil {
				return err
			}
			f := profile.Collect(c.Context(), l)
			return p.print(f, func() error {
				w := tabwriter.NewWriter(p.std.Out, 0, 8, 2, ' ', 0)
				for _, x := range [][2]string{
					{"architecture", f.Architecture}, {"kernel", f.Kernel}, {"distribution", distribution(f)},
					{"init", f.Init}, {"package manager", f.PackageManager}, {"container runtime", f.Runtime}, {"hostname", f.Hostname},
					{"memory", fmt.Sprintf("%d MiB", f.MemoryBytes>>20)}, {"processors", fmt.Sprint(f.CPUs)},
				} {
					if x[1] == "" {
						x[1] = "none"
					}
					fmt.Fprintf(w, "%s\t%s\n", x[0], x[1])
				}
				return w.Flush()
			})
		},
	}
}

// distribution is what os-release(5) says; not every machine has one.
func distribution(f profile.Profile) string {
	return strings.TrimSpace(cmp.Or(f.Distribution, "unknown") + " " + f.DistributionVersion)
}
