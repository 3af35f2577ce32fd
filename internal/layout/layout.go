// Package layout says where things are on a machine.
//
// Every path of the three programs is named here once. A Layout with a Root
// puts all of them, sockets included, under that directory: that is what
// --root does, and what NOX_ROOT does for a process the host starts. It is no
// chroot: nothing else about the program changes.
package layout

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
)

// A Layout maps the paths of a machine to where they really are.
type Layout struct {
	// Root is the directory that stands for "/"; empty is the machine itself.
	Root string
}

// New returns the layout for a --root flag: an empty flag means NOX_ROOT, and
// an empty NOX_ROOT means the machine itself. The root is made absolute.
func New(root string) (Layout, error) {
	if root == "" {
		root = os.Getenv("NOX_ROOT")
	}
	if root == "" {
		return Layout{}, nil
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return Layout{}, err
	}
	if abs == "/" {
		abs = ""
	}
	return Layout{Root: abs}, nil
}

// IsMachine reports whether the layout is the machine itself, not a directory
// that stands for one.
func (l Layout) IsMachine() bool { return l.Root == "" }

// Path returns where the machine's absolute path p really is.
func (l Layout) Path(p string) string { return filepath.Join("/", l.Root, p) }

// The paths of the host.
const (
	// FloorPrefix is where the floor tarball installs by default.
	FloorPrefix = "/usr/local"
	// PackagePrefix is where the distribution's package installs.
	PackagePrefix = "/usr"
	// HostUnit is the name of the unit that keeps the host up.
	HostUnit = "mesh-host.service"
	// HostName names the host's binary and its own resources; nothing that is
	// declared may carry it.
	HostName = "mesh-host"
)

// Prefixes are where the host's software may lie, as paths of the machine: the
// floor's, the package's, and the one `mesh-host install --prefix` recorded, if
// the caller may read that.
func (l Layout) Prefixes() []string {
	out := []string{FloorPrefix, PackagePrefix}
	b, err := os.ReadFile(l.InstallManifest())
	if err != nil {
		return out
	}
	var record struct {
		Prefix string `json:"prefix"`
	}
	if json.Unmarshal(b, &record) == nil && filepath.IsAbs(record.Prefix) && !slices.Contains(out, record.Prefix) {
		out = append(out, record.Prefix)
	}
	return out
}

// HostBinary is the binary of a host installed under prefix.
func (l Layout) HostBinary(prefix string) string {
	return l.Path(filepath.Join(prefix, "bin/mesh-host"))
}

// ShippedTrust holds the chain of release roots that came with the software
// under prefix (1.root.json …).
func (l Layout) ShippedTrust(prefix string) string {
	return l.Path(filepath.Join(prefix, "share/nox-mesh/trust"))
}

// AdminTrust is the administrator's own trust directory, normally empty.
func (l Layout) AdminTrust() string { return l.Path("/etc/nox-mesh/trust") }

// HostConfig is the host's configuration, the administrator's file.
func (l Layout) HostConfig() string { return l.Path("/etc/nox-mesh/host.toml") }

// State is the directory all of the host's state is under (0700).
func (l Layout) State() string { return l.Path("/var/lib/nox-mesh") }

// HostState is the directory of the store and the identity.
func (l Layout) HostState() string { return filepath.Join(l.State(), "host") }

// HostStore is the store: what the host applied.
func (l Layout) HostStore() string { return filepath.Join(l.HostState(), "store.db") }

// TrustState is what the host remembers of releases: root in force, counters.
func (l Layout) TrustState() string { return filepath.Join(l.HostState(), "trust.json") }

// HostIdentity is the identity of an enrolled node: key, certificate, mesh.
func (l Layout) HostIdentity() string { return filepath.Join(l.HostState(), "identity.json") }

// Processes holds one folder for each process resource: definition and state.
func (l Layout) Processes() string { return filepath.Join(l.State(), "process") }

// Content is the content store: blobs by digest, an OCI image layout.
func (l Layout) Content() string { return filepath.Join(l.State(), "content") }

// InstallManifest says what `mesh-host install` laid down.
func (l Layout) InstallManifest() string { return filepath.Join(l.State(), "install.json") }

// LauncherDir holds the launcher copy of the host and its state.
func (l Layout) LauncherDir() string { return filepath.Join(l.State(), "launcher") }

// Launcher is the proven copy of the host's binary that starts it, and runs
// the shims.
func (l Layout) Launcher() string { return filepath.Join(l.LauncherDir(), "mesh-host") }

// HostSocket is where the running host answers.
func (l Layout) HostSocket() string { return l.Path("/run/nox-mesh/host.sock") }

// UnitDir is where units written by the host and by the installer go.
func (l Layout) UnitDir() string { return l.Path("/etc/systemd/system") }

// The paths of the control plane.

// ControllerState is the control plane's state directory.
func (l Layout) ControllerState() string { return l.Path("/var/lib/nox-mesh-controller") }

// ControllerStore is the control plane's state.
func (l Layout) ControllerStore() string { return filepath.Join(l.ControllerState(), "state.db") }

// ControllerContent is the control plane's content store.
func (l Layout) ControllerContent() string { return filepath.Join(l.ControllerState(), "content") }

// ControllerSeed is what the control plane can serve to the next machine, as the
// first node's bundle brought it.
func (l Layout) ControllerSeed() string { return filepath.Join(l.ControllerState(), "seed") }

// ControllerSocket is the control plane's admin socket. It lies in the state
// directory because the control plane's uid cannot write in /run/nox-mesh.
func (l Layout) ControllerSocket() string {
	return filepath.Join(l.ControllerState(), "controller.sock")
}

// ControllerConfig is the operator's configuration of the control plane.
func (l Layout) ControllerConfig() string { return l.Path("/etc/nox-mesh/controller.toml") }
