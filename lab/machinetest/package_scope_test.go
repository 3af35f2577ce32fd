//go:build machine

package machinetest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// slowPackage makes a package whose script says that it began, and ends when it is
// let go. It returns a folder that is a repository of it.
func slowPackage(t *testing.T) string {
	t.Helper()
	return debianRepository(t, "slow", map[string]string{
		"DEBIAN/control":  "Package: slow\nVersion: 1-1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n",
		"DEBIAN/postinst": "#!/bin/sh\ncp /proc/self/cgroup /root/begun.new; mv /root/begun.new /root/begun\nuntil [ -e /root/go ]; do sleep 0.1; done\necho done > /root/ended\n",
		"usr/share/slow":  "slow\n",
	})
}

// P-02: somebody stops the host while the package manager is at work. It is in a
// scope of its own, and comes to its end.
func TestP02TheManagerOutlivesAStopOfTheService(t *testing.T) {
	tarball, repo := artefact(t, "nox-mesh-host-*.tar.gz"), slowPackage(t)
	m := machine.Start(t).Boot("alpha", machine.Offline)
	m.Put("/root/host.tar.gz", 0o644, tarball)
	m.Must("tar", "-C", "/root", "-xzf", "/root/host.tar.gz")
	m.Must("/root/nox-mesh-host-"+firstnode.Version+"/mesh-host", "install")
	m.Must("mkdir", "-p", "/srv/repo")
	for _, f := range []string{"slow.deb", "Packages"} {
		m.Put("/srv/repo/"+f, 0o644, filepath.Join(repo, f))
	}
	m.Must("sh", "-c", "rm -rf /etc/apt/sources.list.d/*; echo 'deb [trusted=yes] copy:/srv/repo ./' > /etc/apt/sources.list; apt-get -qq update")
	m.WriteFile("/root/d.json", 0o600, `{"schema": 1, "name": "slow", "resources": [{"id": "slow", "type": "package", "name": "slow"}]}`)
	m.Must("systemd-run", "--quiet", "--collect", "--", "/usr/local/bin/mesh-host", "apply", "/root/d.json")
	await(t, "the package manager is at work", func() bool { return has(t, m, "/root/begun") })

	group := strings.TrimSpace(m.ReadFile("/root/begun"))
	if !strings.HasSuffix(group, ".scope") || strings.Contains(group, "mesh-host") {
		t.Errorf("the package manager is in the control group %q", group)
	}
	m.Must("systemctl", "stop", "mesh-host")
	if got := m.Must("systemctl", "show", "-P", "Result", "mesh-host"); got != "success" {
		t.Errorf("the stop of the host ended with %q", got)
	}
	unit := m.Must("systemctl", "show", "-P", "ActiveState", filepath.Base(group))

	if unit != "active" || has(t, m, "/root/ended") {
		t.Errorf("after the stop its scope is %q", unit)
	}
	m.Must("touch", "/root/go")
	await(t, "the package manager comes to its end", func() bool {
		return has(t, m, "/root/ended") && strings.Contains(m.Must("dpkg", "-s", "slow"), "Status: install ok installed")
	})
	m.Must("systemctl", "start", "mesh-host")
	await(t, "the host has it", func() bool {
		out, err := m.Run(t.Context(), "mesh-host", "owned")
		return err == nil && strings.Contains(out, "package:slow") && strings.Contains(out, "as applied")
	})
	if left := m.Must("sh", "-c", "ls /var/lib/nox-mesh/host/packages"); left != "" {
		t.Errorf("left: %s", left)
	}
}

func has(t *testing.T, m *machine.Machine, path string) bool {
	t.Helper()
	_, err := m.Run(t.Context(), "test", "-e", path)
	return err == nil
}
