package profile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// saysWithin is set for this test's own program where it is to say what it takes
// the machine for.
const saysWithin = "NOX_TEST_WITHIN"

func TestMain(m *testing.M) {
	switch os.Getenv(saysWithin) {
	case "addresses":
		_, inv := Look(context.Background(), layout.Layout{})
		fmt.Println(inv.Interfaces, inv.Unknown["addresses"])
		return
	case "1":
		p := Collect(context.Background(), layout.Layout{})
		fmt.Printf("%s\n%s\n", p.Virtualisation, p.Container)
		return
	}
	os.Exit(m.Run())
}

// TestSystemdAgreesWithinAMadeUpMachine: with a /sys of our own and a first
// process of our own, the real systemd-detect-virt is to say the same. The
// processor stays this machine's, for both.
func TestSystemdAgreesWithinAMadeUpMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts")
	}
	says(t, "systemd-detect-virt", "--list")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const board = "/sys/class/dmi/id/"
	type files = map[string]string
	for name, c := range map[string]struct {
		container string
		files     files
	}{
		"nothing":           {"", nil},
		"hardware":          {"", files{board + "sys_vendor": "Dell Inc.", board + "product_name": "PowerEdge R640"}},
		"virtualbox":        {"", files{board + "sys_vendor": "innotek GmbH", board + "product_name": "VirtualBox"}},
		"xen":               {"", files{board + "bios_vendor": "Xen", board + "sys_vendor": "Xen"}},
		"parallels":         {"", files{board + "sys_vendor": "Parallels Software International Inc."}},
		"amazon":            {"", files{board + "sys_vendor": "Amazon EC2", "/sys/firmware/dmi/entries/0-0/raw": strings.Repeat("A", 19) + "\x10AAAA"}},
		"amazon's hardware": {"", files{board + "sys_vendor": "Amazon EC2", "/sys/firmware/dmi/entries/0-0/raw": strings.Repeat("A", 19) + "\x0cAAAA"}},
		"qemu":              {"", files{board + "sys_vendor": "QEMU", board + "product_name": "Standard PC (Q35 + ICH9, 2009)"}},
		"vmware":            {"", files{board + "sys_vendor": "VMware, Inc."}},
		"a type in sysfs":   {"", files{"/sys/hypervisor/type": "xen"}},
		"lxc":               {"lxc", nil},
		"nspawn":            {"systemd-nspawn", files{board + "sys_vendor": "innotek GmbH"}},
		"podman":            {"podman", nil},
		"docker":            {"docker", nil},
		"oci":               {"oci", nil},
		"an unknown one":    {"new-one", nil},
		"of systemd":        {"", files{"/run/systemd/container": "lxc-libvirt"}},
		"two that say it":   {"podman", files{"/run/host/container-manager": "systemd-nspawn", "/run/systemd/container": "docker"}},
		"podman's file":     {"oci", files{"/run/.containerenv": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			script := "set -e; mount -t tmpfs none /sys; mount -t tmpfs none /run\n"
			args := []string{}
			for path, content := range c.files {
				script += fmt.Sprintf("mkdir -p \"$(dirname %s)\"; printf '%%s\\n' \"$%d\" >%s\n", path, len(args)+1, path)
				args = append(args, content)
			}
			script += "systemd-detect-virt --vm || :; systemd-detect-virt --container || :; " + saysWithin + "=1 \"$0\"\n"
			env := []string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private", "--", "env", "-i", "PATH=" + os.Getenv("PATH")}
			if c.container != "" {
				env = append(env, "container="+c.container)
			}
			cmd := exec.Command("unshare", append(append(env, "/bin/sh", "-c", script, self), args...)...)
			var said bytes.Buffer
			cmd.Stderr = &said
			out, err := cmd.Output()
			if err != nil && strings.Contains(said.String(), "Operation not permitted") {
				t.Skipf("this machine does not let it: %s", &said)
			}
			lines := strings.Split(string(out), "\n")
			if err != nil || len(lines) < 4 {
				t.Fatalf("%v: %s%s", err, out, &said)
			}
			if (lines[2] != lines[0] && newer[lines[2]] != lines[0]) || lines[3] != lines[1] {
				t.Errorf("%q, systemd says %q", lines[2:4], lines[:2])
			}
		})
	}
}

// TestIPAgreesWithinAMadeUpNetwork: bridges as docker, libvirt and an
// administrator make them, in a network of our own.
func TestIPAgreesWithinAMadeUpNetwork(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes a network")
	}
	says(t, "ip", "-V")
	self, err := os.Executable()
	must(t, err)
	const script = `set -e
mount -t sysfs none /sys
bridge() { ip link add "$1" type bridge; ip address add "$2" dev "$1"; ip link set "$1" up; }
bridge empty 192.0.2.1/24
bridge docker0 172.17.0.1/16
ip link add veth1 type veth peer name inside
ip link set veth1 master docker0 up
bridge virbr0 192.168.122.1/24
ip tuntap add dev tap0 mode tap
ip link set tap0 master virbr0 up
bridge out 198.51.100.4/24
ip link add overlay type vxlan id 5 dstport 4789
ip link set overlay master out up
bridge way 203.0.113.2/24
ip route add default via 203.0.113.1 dev way
ip address add 10.1.1.1/24 dev inside
ip link set inside up
` + saysWithin + `=addresses "$0"
exec "$0" -test.run '^TestAddressesAreWhatIPSays$' -test.v
`
	cmd := exec.Command("unshare", "--net", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", script, self)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil && (strings.Contains(said.String(), "Operation not permitted") || strings.Contains(said.String(), "Unknown device type")) {
		t.Skipf("this machine does not let it: %s", &said)
	}
	told, oracle, _ := strings.Cut(string(out), "\n")
	const want = "[{inside [10.1.1.1]} {out [198.51.100.4]} {way [203.0.113.2]}] "
	if told != want || err != nil || !strings.Contains(oracle, "--- PASS: TestAddressesAreWhatIPSays") {
		t.Errorf("%v: got %s\nwant %s\n%s%s", err, told, want, oracle, &said)
	}
}
