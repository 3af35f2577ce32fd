package packages

import (
	"context"
	"fmt"
	"os"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/command"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/dpkg"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/pacman"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// Choose picks the package manager of what is under the layout's root, or says
// why there is none. Under a root it is this machine's program that works on
// the packages of the root.
func Choose(ctx context.Context, l layout.Layout) (m Manager, lacking string) {
	p := profile.Collect(ctx, l)
	switch {
	case os.Geteuid() != 0:
		return nil, "packages are installed by root only"
	case p.PackageManager == "pacman":
		return pacman.New(l, command.Run), ""
	case p.PackageManager == "apt":
		return dpkg.New(l, command.Run), ""
	case p.Distribution != "":
		return nil, fmt.Sprintf("no package manager that is known is on this machine (%s): neither pacman nor apt", p.Distribution)
	}
	return nil, "no package manager that is known is on this machine: neither pacman nor apt"
}
