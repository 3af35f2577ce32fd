package packages

import (
	"os"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/command"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/dpkg"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/pacman"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

// choose picks the package manager of what is under the layout's root, unless
// there is one, or says why there is none. That is not for good: a disk that
// failed at boot is there later. Under a root it is this machine's program that
// works on the packages of the root.
//
// Whoever uses k.Manager asked here before: it is written once, under the lock.
func (k *Kind) choose() (lacking string) {
	k.choosing.Lock()
	defer k.choosing.Unlock()
	switch {
	case k.Manager != nil:
		return ""
	case os.Geteuid() != 0:
		return "packages are installed by root only"
	}
	switch profile.PackageManager(k.Layout) {
	case "pacman":
		k.Manager = pacman.New(k.Layout, command.Run)
	case "apt":
		k.Manager = dpkg.New(k.Layout, command.Run)
	default:
		return "no package manager that is known is on this machine: neither pacman nor apt"
	}
	return ""
}
