//go:build machine

package machinetest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// exposed is how exposed systemd-analyze may call the unit, of ten; docs/unit.md says
// what a root host cannot give up. It is for people to lower.
const exposed = 9.4

// TestTheUnitIsSound: systemd has nothing to say of it where its programs are, and it
// does not become more exposed.
func TestTheUnitIsSound(t *testing.T) {
	m, floor := unpackedOn(t, machine.Start(t), "alpha")
	m.Must(floor, "install")
	if said := m.Must("sh", "-c", "systemd-analyze verify --man=no /etc/systemd/system/mesh-host.service 2>&1"); said != "" {
		t.Errorf("systemd-analyze verify says:\n%s", said)
	}
	said := m.Must("systemd-analyze", "security", "--no-pager", "mesh-host.service")
	found := regexp.MustCompile(`Overall exposure level for mesh-host\.service: ([0-9.]+)`).FindStringSubmatch(said)
	if found == nil {
		t.Fatalf("systemd-analyze security says no level:\n%s", said)
	}
	if level, err := strconv.ParseFloat(found[1], 64); err != nil || level > exposed {
		t.Errorf("the unit is exposed by %s (%v), at most %.1f:\n%s", found[1], err, exposed, said)
	}
	t.Log(found[0])
}

// facts is a package whose script writes down what it finds of its process, and what
// it is let do. It returns the folder of a repository of it.
func facts(t *testing.T) string {
	t.Helper()
	return debianRepository(t, "facts", map[string]string{
		"DEBIAN/control": "Package: facts\nVersion: 1-1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n",
		"DEBIAN/postinst": `#!/bin/sh
try() { if "$@" >/dev/null 2>&1; then echo "can: $*"; else echo "cannot: $*"; fi; }
{
	grep -E '^(Umask|NoNewPrivs|Seccomp|Cap...|Speculation[A-Za-z_]*):' /proc/self/status
	grep -v 'Max core file size' /proc/self/limits
	for n in /proc/self/ns/*; do echo "$n $(readlink $n)"; done
	cat /proc/self/oom_score_adj /proc/self/personality
	try mknod /root/facts.node b 7 200
	try sh -c ': < /root/facts.node'
	try install -m 6755 /bin/true /root/facts.suid
	try setarch i686 uname -m
	try chrt -f 1 true
	try unshare -mUr true
	try sh -c 'mount -t tmpfs facts /mnt && grep -q "^facts /mnt " /proc/1/mounts; s=$?; umount /mnt; exit $s'
	try su -s /bin/sh -c 'test $(id -u) != 0' nobody
	try sh -c 'date > /tmp/facts && date > /home/facts && date > /usr/lib/facts && date > /boot/facts'
	try sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
} > /root/facts.new
rm -f /root/facts.node /root/facts.suid /tmp/facts /home/facts /usr/lib/facts /boot/facts
mv /root/facts.new /root/facts
`,
		"usr/share/facts": "facts\n",
	})
}

// TestTheUnitTakesNothingFromThoseItStarts: the script of a package finds what it finds
// when a person installs it, and a file can be anywhere.
func TestTheUnitTakesNothingFromThoseItStarts(t *testing.T) {
	repo := facts(t)
	m, floor := unpackedOn(t, machine.Start(t), "alpha")
	m.Must(floor, "install")
	m.Must("mkdir", "-p", "/srv/repo")
	for _, f := range []string{"facts.deb", "Packages"} {
		m.Put("/srv/repo/"+f, 0o644, filepath.Join(repo, f))
	}
	m.Must("sh", "-c", "rm -rf /etc/apt/sources.list.d/*; echo 'deb [trusted=yes] copy:/srv/repo ./' > /etc/apt/sources.list; apt-get -qq update")

	if _, err := m.RunInUnit(t.Context(), "dpkg", "--install", "/srv/repo/facts.deb"); err != nil {
		t.Fatal(err)
	}
	byHand := m.ReadFile("/root/facts")
	m.Must("dpkg", "--purge", "facts")
	m.Must("rm", "/root/facts")

	places := []string{"/home/somebody/file", "/tmp/file", "/var/tmp/file", "/usr/lib/file", "/boot/file", "/root/file", "/opt/file", "/run/file"}
	resources := []string{`{"id": "facts", "type": "package", "name": "facts"}`}
	for i, path := range places {
		resources = append(resources, fmt.Sprintf(`{"id": "file%d", "type": "file", "path": %q, "content": "hello\n", "mode": "4711", "owner": "nobody"}`, i, path))
	}
	m.WriteFile("/root/d.json", 0o600, `{"schema": 1, "name": "facts", "resources": [`+strings.Join(resources, ",")+`]}`)
	m.Must("mesh-host", "apply", "/root/d.json")
	byHost := m.ReadFile("/root/facts")
	if strings.Count(byHand, "can: ") < 8 || strings.Contains(byHand, "cannot: sh -c date") {
		t.Fatalf("the script did not look:\n%s", byHand)
	}
	hand, host := strings.Split(byHand, "\n"), strings.Split(byHost, "\n")
	for _, line := range hand {
		if !slices.Contains(host, line) {
			t.Errorf("a person's package has, and the host's has not: %s", line)
		}
	}
	for _, line := range host {
		if !slices.Contains(hand, line) {
			t.Errorf("the host's package has, and a person's has not: %s", line)
		}
	}
	for _, path := range places {
		if got := m.Must("stat", "-c", "%a %U %s", path); got != "4711 nobody 6" {
			t.Errorf("%s: %s", path, got)
		}
	}

	// The device list binds who is in the unit's control group. systemd-nspawn forbids
	// bpf(2) unless told otherwise, and systemd then goes on without the list.
	const node = "mknod /root/node b 7 201"
	if _, err := m.Run(t.Context(), "systemd-run", "--quiet", "--wait", "--collect", "--property=DevicePolicy=closed", "sh", "-c", node); err == nil {
		t.Log("no unit of this machine can be kept from devices: the host's is not tried")
		return
	}
	group := "/sys/fs/cgroup" + m.Must("systemctl", "show", "-P", "ControlGroup", "mesh-host") + "/cgroup.procs"
	if out, err := m.Run(t.Context(), "sh", "-c", "echo $$ > "+group+" && "+node); err == nil {
		t.Errorf("a device can be made in the host's control group: %s", out)
	}
	m.Must("sh", "-c", node)
}
