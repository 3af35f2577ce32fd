package layout

import (
	"path"
	"path/filepath"
)

// Own is something that the installation owns and no declaration may touch.
type Own struct {
	// Path is a path of the machine, whatever the layout's root: what is there,
	// and everything below.
	Path string
	// What says for people what it is: "the host's own state".
	What string
}

// UnitDirs are where systemd has its units and their companions
// (systemd.unit(5)), as paths of the machine.
var UnitDirs = []string{"/etc/systemd", "/run/systemd", "/usr/lib/systemd", "/lib/systemd", "/usr/local/lib/systemd"}

// OwnPaths lists what the installation owns, when its software may lie under
// these prefixes. (The host's binary and its package may be declared.)
func OwnPaths(prefixes ...string) []Own {
	m := Layout{}
	own := []Own{
		{m.State(), "the host's own state"},
		{m.AdminTrust(), "the host's own trust"},
		{m.HostConfig(), "the host's own configuration"},
		{path.Dir(m.HostSocket()), "the host's own runtime folder"},
	}
	for _, prefix := range prefixes {
		own = append(own, Own{m.ShippedTrust(prefix), "the host's own trust"})
	}
	for _, dir := range UnitDirs {
		own = append(own, Own{path.Join(dir, "system", HostUnit), "the host's own unit"})
	}
	return own
}

// OwnFiles are the host's files that a hard link could be to, as they really
// lie.
func (l Layout) OwnFiles() []string {
	out := []string{l.HostStore(), l.TrustState(), l.HostIdentity(), l.HostConfig(), l.InstallManifest(), l.Launcher()}
	for _, dir := range UnitDirs {
		out = append(out, l.Path(filepath.Join(dir, "system", HostUnit)))
	}
	return out
}
