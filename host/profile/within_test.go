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
	if os.Getenv(saysWithin) != "" {
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
