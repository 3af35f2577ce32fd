//go:build machine

package machinetest

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// staticBusybox is a busybox(1) that needs nothing beside it.
func staticBusybox(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("busybox")
	if err == nil {
		f, ferr := elf.Open(path)
		if ferr != nil {
			t.Fatal(ferr)
		}
		defer f.Close()
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				path = ""
			}
		}
	}
	if err == nil && path != "" {
		return path
	}
	if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
		t.Fatal("a static busybox is not here (busybox-static)")
	}
	t.Skip("a static busybox is not here (busybox-static)")
	return ""
}

// life is what a person does on a machine without systemd, bash and /etc.
const life = `
what() { find / -xdev \( -path /proc -o -path /dev -o -path /root \) -prune -o -print | sort; }
cd /root
what >/root/before
tar -xzf host.tar.gz
./nox-mesh-host-VERSION/mesh-host install >/root/said 2>&1
grep "launch /usr/local/bin/mesh-host" /root/said >/dev/null
/var/lib/nox-mesh/launcher/mesh-host launch /usr/local/bin/mesh-host 2>/root/log &
host=$!
n=0; until mesh-host status 2>/dev/null | grep running >/dev/null; do n=$((n+1)); [ $n -lt 300 ]; sleep 0.1; done
mesh-host apply web.json
cat /srv/page
n=0; until [ -s /srv/alive ]; do n=$((n+1)); [ $n -lt 300 ]; sleep 0.1; done
mesh-host owned
kill $host; wait $host
mesh-host retire --yes
! mesh-host uninstall
mesh-host uninstall --yes --purge
what >/root/after
diff /root/before /root/after
echo clean
`

// TestI12AMachineWithNothing has busybox and a kernel: no init system, no bash, no
// package manager, no users. The whole life of a host is lived on it.
func TestI12AMachineWithNothing(t *testing.T) {
	machine.Require(t)
	busybox, tarball := staticBusybox(t), artefact(t, "nox-mesh-host-*.tar.gz")
	root := t.TempDir()
	for _, dir := range []string{"bin", "dev", "proc", "root", "run"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(root, 0o755); err != nil { // TempDir's follows the umask
		t.Fatal(err)
	}
	for to, source := range map[string]string{"bin/busybox": busybox, "root/host.tar.gz": tarball} {
		b, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, to), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"sh", "tar", "gzip", "gunzip", "find", "sort", "grep", "cat", "sleep", "diff", "kill"} {
		if err := os.Symlink("busybox", filepath.Join(root, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	const declaration = `{"schema": 1, "name": "web", "resources": [
		{"id": "page", "type": "file", "path": "/srv/page", "content": "hello\n"},
		{"id": "alive", "type": "process", "name": "alive", "command": ["/bin/sh", "-c", "echo $$ >/srv/alive; trap 'rm /srv/alive; exit' TERM; while :; do sleep 0.1; done"]}]}`
	if err := os.WriteFile(filepath.Join(root, "root/web.json"), []byte(declaration), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("busybox", filepath.Join(root, "bin/rm")); err != nil {
		t.Fatal(err)
	}
	// All that it starts ends with its PID 1, and all it mounts with its namespace.
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--net", "--fork", "--kill-child=KILL", "sh", "-euc",
		`mount -t proc proc "$1/proc"; mount -t tmpfs -o mode=755 tmpfs "$1/dev"; mknod -m 666 "$1/dev/null" c 1 3; mknod -m 666 "$1/dev/urandom" c 1 9
		exec chroot "$1" /bin/sh -euc "$2"`, "sh", root, strings.ReplaceAll(life, "VERSION", firstnode.Version))
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.HasSuffix(string(out), "clean\n") || !strings.Contains(string(out), "hello\n") {
		log, _ := os.ReadFile(filepath.Join(root, "root/log"))
		said, _ := os.ReadFile(filepath.Join(root, "root/said"))
		t.Errorf("%v\ninstall said:\n%s\nthe host said:\n%s", err, said, log)
	}
}

// TestAnImageIsInstalledIntoAndBoots: the tree is made with --root, where nothing is
// started; what is in it starts with the machine, which has no identity of its own.
func TestAnImageIsInstalledIntoAndBoots(t *testing.T) {
	m, floor := unpackedOn(t, machine.Start(t), "alpha")
	before := mainPID(m, "mesh-host")
	m.Must(floor, "install", "--root", "/image")
	if m.Must("find", "/etc/systemd/system", "-name", "mesh-host*") != "" || before != mainPID(m, "mesh-host") {
		t.Error("the machine itself was touched")
	}
	if has(t, m, "/image/var/lib/nox-mesh/host/identity.json") {
		t.Error("the image has an identity")
	}
	m.Must("systemctl", "--root=/image", "enable", "mesh-host.service")
	m.Must("cp", "-a", "/image/.", "/")
	m.Must("rm", "-r", "/image")
	m.Reboot()
	await(t, "the host runs", func() bool { return running(t, m) == firstnode.Version })
	if got := m.Must("systemctl", "is-system-running"); got != "running" {
		t.Errorf("the machine is %q: %s", got, m.Must("systemctl", "--failed", "--no-legend"))
	}
	m.Must("mesh-host", "uninstall", "--yes", "--purge")
	if left := m.Must("find", "/etc/systemd/system", "/usr/local", "/var/lib", "-name", "*mesh*"); left != "" {
		t.Errorf("left: %s", left)
	}
}
