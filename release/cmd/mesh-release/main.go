// Command mesh-release is the build pipeline of whoever publishes: keys,
// binaries, the floor tarball, bundles, signatures. It needs no service, no
// network but for Go's modules, and no other program but go and git.
package main

import (
	"os"

	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/secret"
)

func main() {
	secret.KeepMemory()
	// A passphrase may come by a descriptor (--passphrase-file /dev/fd/9): no program
	// that runs for us is to have it as well.
	child.KeepDescriptors()
	os.Exit(cli.Main("mesh-release", run))
}
