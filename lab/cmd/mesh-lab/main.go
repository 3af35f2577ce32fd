// Command mesh-lab raises a first node from this source on this computer,
// without root, and takes it away again.
package main

import (
	"os"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/lab/firstnode"
)

func main() { os.Exit(cli.Main("mesh-lab", firstnode.Command)) }
