//go:build machine

package machinetest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// unpackedOn boots a machine on which the tarball is unpacked, and returns the
// mesh-host in it.
func unpackedOn(t *testing.T, lab *machine.Lab, name string) (m *machine.Machine, floor string) {
	t.Helper()
	tarball := artefact(t, "nox-mesh-host-*.tar.gz")
	m = lab.Boot(name, machine.Offline)
	m.Put("/root/"+filepath.Base(tarball), 0o644, tarball)
	m.Must("tar", "-C", "/root", "-xzf", "/root/"+filepath.Base(tarball))
	return m, "/root/nox-mesh-host-" + firstnode.Version + "/mesh-host"
}

// says runs a command that is to end with the code, and returns what it said.
func says(t *testing.T, m *machine.Machine, code int, args ...string) string {
	t.Helper()
	out, err := m.Run(t.Context(), args...)
	if machine.ExitCode(err) != code {
		t.Fatalf("%s: %v, not exit code %d\n%s", strings.Join(args, " "), err, code, out)
	}
	if err != nil {
		out += err.Error()
	}
	return out
}

// TestI04WhereUsrCannotBeWritten: /usr is read-only, and /usr/local on a mount of its
// own; or not, and the software goes elsewhere.
func TestI04WhereUsrCannotBeWritten(t *testing.T) {
	lab := machine.Start(t)
	m, floor := unpackedOn(t, lab, "local")
	m.Must("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/usr/local")
	m.Must("mkdir", "/usr/local/bin")
	m.Must("mount", "--bind", "/usr", "/mnt")
	m.Must("mount", "-o", "remount,bind,ro", "/mnt")
	m.Must("sh", "-c", "mount --bind /mnt /usr && mount -t tmpfs -o mode=755 tmpfs /usr/local && mkdir /usr/local/bin")
	says(t, m, 1, "touch", "/usr/x")
	m.Must(floor, "install")
	if got := from(t, m); got != "/usr/local/bin/mesh-host" {
		t.Errorf("it runs from %q", got)
	}
	m.Must("/usr/local/bin/mesh-host", "uninstall", "--yes", "--purge")
	if got := m.Must("find", "/usr/local", "-type", "f"); got != "" {
		t.Errorf("left: %s", got)
	}

	m, floor = unpackedOn(t, lab, "none")
	m.Must("sh", "-c", "mount --bind /usr /usr && mount -o remount,bind,ro /usr")
	before := listing(m)
	if said := says(t, m, 1, floor, "install"); !strings.Contains(said, "--prefix DIR") {
		t.Errorf("it says: %s", said)
	}
	same(t, "the install that could not be", before, listing(m))
	m.Must(floor, "install", "--prefix", "/opt/nox")
	if got := from(t, m); got != "/opt/nox/bin/mesh-host" {
		t.Errorf("it runs from %q", got)
	}
	m.Must("/opt/nox/bin/mesh-host", "uninstall", "--yes", "--purge")
	same(t, "the uninstall", before, listing(m))
}

// TestI05NoTemporaryFolderIsNeeded: nothing runs from /tmp, and TMPDIR is nowhere.
func TestI05NoTemporaryFolderIsNeeded(t *testing.T) {
	m, floor := unpackedOn(t, machine.Start(t), "alpha")
	m.Must("mount", "-t", "tmpfs", "-o", "noexec,mode=555", "tmpfs", "/tmp")
	m.Must("mount", "-t", "tmpfs", "-o", "noexec,mode=555", "tmpfs", "/var/tmp")
	m.Must("env", "TMPDIR=/nowhere", floor, "install")
	m.Must("env", "TMPDIR=/nowhere", "mesh-host", "status")
	m.Must("env", "TMPDIR=/nowhere", "mesh-host", "uninstall", "--yes", "--purge")
	if left := m.Must("find", "/tmp", "/var/tmp", "-mindepth", "1"); left != "" {
		t.Errorf("left: %s", left)
	}
}

// TestALauncherThatMayNotRunHasAPlace: where no program runs from the state, what
// install says to do helps, and is left alone in the end.
func TestALauncherThatMayNotRunHasAPlace(t *testing.T) {
	m, floor := unpackedOn(t, machine.Start(t), "alpha")
	m.Must("sh", "-c", "mount --bind /var/lib /var/lib && mount -o remount,bind,noexec /var/lib")
	before := listing(m)
	said := says(t, m, 3, floor, "install")
	same(t, "what is refused", before, listing(m))
	const folder, place = "/usr/local/lib/nox-mesh/launcher", "/var/lib/nox-mesh/launcher"
	line := folder + " " + place + " none bind 0 0"
	if !strings.Contains(said, "noexec") || !strings.Contains(said, "mkdir -p "+folder+" "+place) || !strings.Contains(said, `"`+line+`"`) || !strings.Contains(said, "mount "+place) {
		t.Fatalf("it says: %s", said)
	}
	m.Must("mkdir", "-p", folder, place)
	m.Must("sh", "-c", "echo '"+line+"' >>/etc/fstab")
	m.Must("mount", place)
	m.Must(floor, "install")
	if got := running(t, m); got != firstnode.Version {
		t.Errorf("version %q runs", got)
	}
	if !has(t, m, folder+"/mesh-host") {
		t.Error("the launcher is elsewhere")
	}
	process := sleeper(m)
	if process == "0" || process == "" {
		t.Error("no process runs under it")
	}
	m.Must("mesh-host", "retire", "--yes")
	m.Must("mesh-host", "uninstall", "--yes", "--purge")
	if left := m.Must("find", folder, place, "-mindepth", "1"); left != "" {
		t.Errorf("left: %s", left)
	}
	m.Must("umount", place)
}
