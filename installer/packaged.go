package installer

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// packagedUnit is there when a package, not a tarball, owns the host.
const packagedUnit = "/usr/lib/systemd/system/" + layout.HostUnit

// HandOverCommand has a tarball's host make way for a package's.
const HandOverCommand = pkgbuild.PackagedHost + " install --hand-over"

// packaged reports whether a package owns the host, and the path that says so. It
// reads and asks nobody: a package manager may be at work this moment, and this
// be run by it.
func packaged(l layout.Layout) (by string, ok bool) {
	if _, err := os.Lstat(l.Path(packagedUnit)); err == nil {
		return packagedUnit, true
	}
	if _, err := os.Lstat(l.HostBinary(layout.PackagePrefix)); err != nil {
		return "", false
	}
	// pacman(8) has a folder for each package, NAME-VERSION-RELEASE.
	const local = "/var/lib/pacman/local"
	entries, err := os.ReadDir(l.Path(local))
	if err != nil {
		return "", false
	}
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), pkgbuild.HostPackage+"-"); ok && strings.Count(rest, "-") == 1 {
			return filepath.Join(local, e.Name()), true
		}
	}
	return "", false
}

// Twice reports whether both a tarball and a package installed the host: the
// unit of the one starts it, and the other is what an upgrade replaces. remedy is
// the command that ends it. It says no where it may not look.
func Twice(l layout.Layout) (remedy string, twice bool) {
	if _, ok := packaged(l); !ok {
		return "", false
	}
	rec, ok, err := readRecord(l)
	if err != nil || !ok || len(rec.Files) == 0 {
		return "", false
	}
	if l.IsMachine() {
		return HandOverCommand, true
	}
	return HandOverCommand + " --root " + l.Root, true
}
