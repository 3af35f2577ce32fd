// Command mesh-host is the program on every machine: the service that applies
// declarations, and the commands a person uses to install, inspect and rescue
// it.
package main

import (
	"os"

	"github.com/nox-mesh/nox-mesh/host/cmd/mesh-host/command"
	"github.com/nox-mesh/nox-mesh/host/internal/launcher"
	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func main() {
	// The launcher and the shim run from the proven copy of this binary, and
	// before anything else of it.
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "launch":
			os.Exit(launcher.Main(os.Args[2:]))
		case "post":
			os.Exit(launcher.Post())
		case "reload":
			os.Exit(launcher.Reload(os.Args[2:]))
		case "shim":
			os.Exit(supervise.Main(os.Args[2:]))
		}
	}
	os.Exit(cli.Main("mesh-host", command.Run))
}
