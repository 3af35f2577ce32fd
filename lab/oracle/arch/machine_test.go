//go:build machine

package arch

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// TestPackageOnAMachine installs the package where systemd runs: the host is up
// and will be after a boot, an upgrade does not touch it, removal ends it.
func TestPackageOnAMachine(t *testing.T) {
	machine.Require(t)
	old := pack(t, t.TempDir(), "host", "1.0.0-rc.1", realHost(t, t.TempDir(), "1.0.0-rc.1"), "")
	new := pack(t, t.TempDir(), "host", "1.0.0", realHost(t, t.TempDir(), "1.0.0"), "")
	m := machine.Start(t).Boot("alpha")
	for _, p := range []string{old, new} {
		m.Put("/root/"+filepath.Base(p), 0o644, p)
	}
	pacman := func(args ...string) {
		t.Helper()
		if out := m.Must("sh", "-c", "pacman --noconfirm "+strings.Join(args, " ")+" 2>&1"); strings.Contains(out, "error:") {
			t.Errorf("pacman %v:\n%s", args, out)
		}
	}
	pid := func() string { return m.Must("systemctl", "show", "-P", "MainPID", "mesh-host") }

	pacman("-U", "/root/"+filepath.Base(old))
	// The scriptlet does not wait for the host; this does.
	m.Must("systemctl", "start", "mesh-host")
	if got := m.Must("systemctl", "is-enabled", "mesh-host"); got != "enabled" {
		t.Errorf("the unit is %s", got)
	}
	if got := m.Must("mesh-host", "version"); !strings.Contains(got, " 1.0.0-rc.1 ") {
		t.Errorf("installed is %s", got)
	}
	if got := m.Must("stat", "-c", "%a %U", "/var/lib/nox-mesh", "/var/lib/nox-mesh/launcher/mesh-host"); got != "700 root\n755 root" {
		t.Errorf("state and launcher are %q", got)
	}
	if got := m.Must("readlink", "-f", "/proc/"+pid()+"/exe"); got != "/usr/bin/mesh-host" {
		t.Errorf("%s runs", got)
	}
	checked := m.Must("pacman", "-Qkk", "nox-mesh-host")
	if found := counted.FindStringSubmatch(checked); found == nil || found[2] == "0" || found[3] != "0" {
		t.Errorf("pacman -Qkk: %s", checked)
	}

	before := pid()
	pacman("-U", "/root/"+filepath.Base(new))
	if after := pid(); after != before {
		t.Errorf("the upgrade restarted the host: %s is now %s", before, after)
	}
	if got := m.Must("mesh-host", "version"); !strings.Contains(got, " 1.0.0 ") {
		t.Errorf("installed is %s", got)
	}
	if got := m.Must("systemctl", "is-enabled", "mesh-host"); got != "enabled" {
		t.Errorf("after the upgrade the unit is %s", got)
	}

	m.Reboot()
	m.Must("systemctl", "is-active", "mesh-host")

	last := pid()
	pacman("-R", "nox-mesh-host")
	if out, err := m.Run(t.Context(), "systemctl", "cat", "mesh-host"); err == nil {
		t.Errorf("the unit is still there:\n%s", out)
	}
	if _, err := m.Run(t.Context(), "test", "-e", "/proc/"+last); err == nil {
		t.Error("the host still runs")
	}
	if _, err := m.Run(t.Context(), "test", "-e", "/usr/bin/mesh-host"); err == nil {
		t.Error("the binary is still there")
	}
	m.Must("test", "-d", "/var/lib/nox-mesh/host") // the state stays
	if got := m.Must("systemctl", "--failed", "--no-legend"); got != "" {
		t.Errorf("failed: %s", got)
	}
}
