// Command mesh-controller is the control plane of a mesh, and the commands of
// the person who runs it. All it does is in internal/command.
package main

import (
	"os"

	"github.com/nox-mesh/nox-mesh/controlplane/cmd/mesh-controller/internal/command"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/secret"
)

func main() {
	secret.NoCore() // it has the keys of the mesh
	os.Exit(cli.Main("mesh-controller", command.Run))
}
