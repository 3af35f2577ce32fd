// Command packone packs one Arch package and prints its file name: the binary
// that the tests in lab/oracle/arch hold against pacman and makepkg. It is no
// part of a release.
//
//	packone nfpm FILE.yaml DIR
//	packone host|controller VERSION BINARY TRUST DIR
//	packone keyring VERSION FOLDER DIR
//
// TRUST is a folder with N.root.json, or "". FOLDER has nox-mesh.gpg and its two
// neighbours. The time is SOURCE_DATE_EPOCH; the licence is ./LICENSE.
package main

import (
	"os"

	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func main() { os.Exit(cli.Main("packone", run)) }
