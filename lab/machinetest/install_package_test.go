//go:build machine

package machinetest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// hostPackage is the host's package in the release that dist is.
func hostPackage(t *testing.T, dist string) string {
	t.Helper()
	return one(t, dist, "arch/*/nox-mesh-host-*.pkg.tar.zst")
}

// floorAndPackages boots a machine on which the tarball is unpacked and the
// packages, of this version and the next, lie in /root.
func floorAndPackages(t *testing.T, lab *machine.Lab, name string) (m *machine.Machine, floor, same, next string) {
	t.Helper()
	tarball, newerTarball := artefact(t, "nox-mesh-host-*.tar.gz"), newerRelease(t)
	m = lab.Boot(name, machine.Offline)
	for _, f := range []string{tarball, newerTarball} {
		m.Put("/root/"+filepath.Base(f), 0o644, f)
		m.Must("tar", "-C", "/root", "-xzf", "/root/"+filepath.Base(f))
	}
	same, next = "/root/same.pkg.tar.zst", "/root/next.pkg.tar.zst"
	m.Put(same, 0o644, hostPackage(t, release(t)))
	m.Put(next, 0o644, hostPackage(t, filepath.Dir(newerTarball)))
	return m, "/root/nox-mesh-host-" + firstnode.Version + "/mesh-host", same, next
}

// from is the binary that the host runs from.
func from(t *testing.T, m *machine.Machine) string {
	t.Helper()
	out, _ := m.Run(t.Context(), "readlink", "/proc/"+mainPID(m, "mesh-host")+"/exe")
	return out
}

// sleeper declares a page and a process, and returns the process.
func sleeper(m *machine.Machine) string {
	m.WriteFile("/root/web.json", 0o600, `{"schema": 1, "name": "web", "resources": [
		{"id": "page", "type": "file", "path": "/srv/page", "content": "hello\n"},
		{"id": "sleeper", "type": "process", "name": "sleeper", "command": ["/bin/sleep", "infinity"], "user": "nobody"}]}`)
	m.Must("mesh-host", "apply", "/root/web.json")
	return mainPID(m, "nox-sleeper")
}

// TestAPackageTakesOverAFloor, of the same version and of the next, and gives it
// back: the host changes its place three times, and what it looks after stays up.
func TestAPackageTakesOverAFloor(t *testing.T) {
	lab := machine.Start(t)
	for name, next := range map[string]bool{"same": false, "next": true} {
		t.Run(name, func(t *testing.T) {
			m, floor, pkg, newerPkg := floorAndPackages(t, lab, name)
			upgrade := filepath.Dir(filepath.Dir(floor)) + "/nox-mesh-host-" + newer + "/mesh-host"
			version := firstnode.Version
			if next {
				pkg, version = newerPkg, newer
			}
			m.Must(floor, "install")
			m.WriteFile("/etc/nox-mesh/host.toml", 0o644, "reconcile_interval = \"1h\"\n")
			process, host := sleeper(m), mainPID(m, "mesh-host")

			began := time.Now()
			said := m.Must("sh", "-c", "pacman -U --noconfirm "+pkg+" 2>&1")
			if !strings.Contains(said, "removed /usr/local/bin/mesh-host") {
				t.Errorf("the package's script does not say what it took away:\n%s", said)
			}
			for _, gone := range []string{"/usr/local/bin/mesh-host", "/usr/local/share/nox-mesh", "/etc/systemd/system/mesh-host.service", "/var/lib/nox-mesh/install.json"} {
				if has(t, m, gone) {
					t.Errorf("%s is there", gone)
				}
			}
			await(t, "the package's host runs", func() bool { return from(t, m) == "/usr/bin/mesh-host" })
			await(t, "it answers", func() bool { return running(t, m) == version })
			t.Logf("from pacman -U to the package's host: %d ms", time.Since(began).Milliseconds())
			if got := mainPID(m, "mesh-host"); got == host {
				t.Error("the host did not end")
			}
			for what, want := range map[string]string{"FragmentPath": "/usr/lib/systemd/system/mesh-host.service", "UnitFileState": "enabled", "Result": "success", "ActiveState": "active"} {
				if got := m.Must("systemctl", "show", "-P", what, "mesh-host"); strings.TrimPrefix(got, "/usr") != strings.TrimPrefix(want, "/usr") {
					t.Errorf("%s is %q, not %q", what, got, want)
				}
			}
			looked := func(when string) {
				t.Helper()
				if got := mainPID(m, "nox-sleeper"); got != process || !holds(t, m, "/srv/page", "hello\n") {
					t.Errorf("%s: the process %s is now %s", when, process, got)
				}
				if got := m.ReadFile("/etc/nox-mesh/host.toml"); got != "reconcile_interval = \"1h\"\n" {
					t.Errorf("%s: the person's configuration is %q", when, got)
				}
			}
			looked("after the hand-over")
			if got := m.Must("mesh-host", "owned"); !strings.Contains(got, "/srv/page") || !strings.Contains(got, "sleeper") {
				t.Errorf("the package's host owns:\n%s", got)
			}
			if got := m.Must("mesh-host", "status"); strings.Contains(got, "twice") {
				t.Errorf("status:\n%s", got)
			}
			if out, err := m.Run(t.Context(), floor, "install"); machine.ExitCode(err) != 3 || !strings.Contains(err.Error(), "package manager") {
				t.Errorf("a tarball over a package: %v\n%s", err, out)
			}
			if out, err := m.Run(t.Context(), "mesh-host", "uninstall", "--yes", "--keep-resources"); machine.ExitCode(err) != 3 || !strings.Contains(err.Error(), "package manager") {
				t.Errorf("uninstall of a package: %v\n%s", err, out)
			}
			m.Reboot()
			await(t, "it is back after a reboot", func() bool { return running(t, m) == version })
			process = mainPID(m, "nox-sleeper")

			if !next {
				// S-01: an upgrade of the package touches no unit; the host goes over by itself.
				m.Must("pacman", "-U", "--noconfirm", newerPkg)
				m.Must("mesh-host", "reconcile")
				await(t, "the next version runs", func() bool { return running(t, m) == newer })
				looked("after the upgrade")
			}

			m.Must("pacman", "-R", "--noconfirm", "nox-mesh-host")
			if out, _ := m.Run(t.Context(), "systemctl", "is-active", "mesh-host"); out == "active" {
				t.Error("the host runs after its package was removed")
			}
			if got := mainPID(m, "nox-sleeper"); got != process {
				t.Errorf("the process %s is now %s", process, got)
			}
			m.Must(upgrade, "install")
			if got := from(t, m); got != "/usr/local/bin/mesh-host" {
				t.Errorf("the host runs from %q", got)
			}
			if got := m.Must("mesh-host", "owned"); !strings.Contains(got, "/srv/page") {
				t.Errorf("after the way back the host owns:\n%s", got)
			}
			if got := mainPID(m, "nox-sleeper"); got != process {
				t.Errorf("the process %s is now %s", process, got)
			}
			if got := m.Must("systemctl", "is-system-running"); got != "running" {
				t.Errorf("in the end the machine is %q: %s", got, m.Must("systemctl", "--failed", "--no-legend"))
			}
		})
	}
}

// TestAPackageWaitsForAPersonsUnit: a unit that was changed hides the package's, and
// starts the tarball's host. Nothing is taken from under it.
func TestAPackageWaitsForAPersonsUnit(t *testing.T) {
	m, floor, pkg, _ := floorAndPackages(t, machine.Start(t), "alpha")
	m.Must(floor, "install")
	m.Must("sed", "-i", "/^\\[Service\\]/a Nice=5", "/etc/systemd/system/mesh-host.service")
	m.Must("systemctl", "daemon-reload")
	m.Must("systemctl", "restart", "mesh-host")
	said := m.Must("sh", "-c", "pacman -U --noconfirm "+pkg+" 2>&1")
	if !strings.Contains(said, "was changed here") || !strings.Contains(said, "systemctl edit mesh-host.service") {
		t.Errorf("the package's script says:\n%s", said)
	}
	await(t, "it answers", func() bool { return running(t, m) == firstnode.Version })
	if got := from(t, m); got != "/usr/local/bin/mesh-host" || !has(t, m, "/usr/local/bin/mesh-host") {
		t.Errorf("the host runs from %q", got)
	}
	if got := m.Must("mesh-host", "status"); !strings.Contains(got, "installed twice") || !strings.Contains(got, "/usr/bin/mesh-host install --hand-over") {
		t.Errorf("status:\n%s", got)
	}
	// What it says to do.
	m.WriteFile("/etc/systemd/system/mesh-host.service.d/override.conf", 0o644, "[Service]\nNice=5\n")
	m.Must("rm", "/etc/systemd/system/mesh-host.service")
	m.Must("/usr/bin/mesh-host", "install", "--hand-over")
	await(t, "the package's host runs", func() bool { return from(t, m) == "/usr/bin/mesh-host" })
	if got := m.Must("ps", "-o", "ni=", "-p", mainPID(m, "mesh-host")); strings.TrimSpace(got) != "5" {
		t.Errorf("it runs with nice %s", got)
	}
	await(t, "it answers", func() bool { return running(t, m) == firstnode.Version })
	if got := m.Must("mesh-host", "status"); strings.Contains(got, "twice") {
		t.Errorf("status:\n%s", got)
	}
}
