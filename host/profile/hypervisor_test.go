package profile

import (
	"os"
	"strings"
	"testing"
)

func TestHypervisorsAreToldApart(t *testing.T) {
	const dmi = "/sys/class/dmi/id/"
	// The firmware's table 0, whose twentieth byte has the bit of a virtual machine.
	table := func(b byte) string { return strings.Repeat("\x00", 19) + string(rune(b)) + "\x00\x00\x00\x00" }
	type files = map[string]string
	for name, c := range map[string]struct {
		signature string
		files     files
		want      string
	}{
		"hardware":                           {"", files{dmi + "sys_vendor": "Dell Inc.\n", dmi + "product_name": "PowerEdge R640\n", "/sys/firmware/dmi/entries/0-0/raw": table(0x0c)}, "none"},
		"kvm by processor":                   {"KVMKVMKVM\x00\x00\x00", files{dmi + "sys_vendor": "QEMU\n"}, "kvm"},
		"qemu without kvm":                   {"TCGTCGTCGTCG", files{dmi + "sys_vendor": "QEMU\n"}, "qemu"},
		"qemu that pleases":                  {"Microsoft Hv", files{dmi + "sys_vendor": "QEMU\n"}, "qemu"},
		"hyper-v":                            {"Microsoft Hv", files{dmi + "sys_vendor": "Microsoft Corporation\n", dmi + "product_version": "Hyper-V UEFI Release v4.1\n"}, "microsoft"},
		"hyper-v without a board":            {"Microsoft Hv", nil, "microsoft"},
		"virtualbox on kvm":                  {"KVMKVMKVM\x00\x00\x00", files{dmi + "sys_vendor": "innotek GmbH\n", dmi + "product_name": "VirtualBox\n"}, "oracle"},
		"openstack":                          {"", files{dmi + "product_name": "OpenStack Nova\n"}, "kvm"},
		"amazon, a guest":                    {"KVMKVMKVM\x00\x00\x00", files{dmi + "sys_vendor": "Amazon EC2\n", "/sys/firmware/dmi/entries/0-0/raw": table(0x1c)}, "amazon"},
		"amazon, the machine":                {"", files{dmi + "sys_vendor": "Amazon EC2\n", "/sys/firmware/dmi/entries/0-0/raw": table(0x0c)}, "none"},
		"amazon, by its type":                {"", files{dmi + "sys_vendor": "Amazon EC2\n", dmi + "product_name": "m6g.metal\n"}, "none"},
		"google":                             {"KVMKVMKVM\x00\x00\x00", files{dmi + "product_name": "Google Compute Engine\n"}, "google"},
		"xen, a guest with a real processor": {"", files{"/proc/xen/": ""}, "xen"},
		"xen, its manager":                   {"XenVMMXenVMM", files{"/proc/xen/capabilities": "control_d\n", "/sys/hypervisor/type": "xen\n"}, "none"},
		"xen, its manager, newer":            {"", files{"/proc/xen/": "", "/sys/hypervisor/properties/features": "00000801\n"}, "none"},
		"xen, features of a guest":           {"", files{"/proc/xen/": "", "/sys/hypervisor/properties/features": "00000001\n", "/proc/xen/capabilities": "control_d\n"}, "xen"},
		"xen by sysfs":                       {"", files{"/sys/hypervisor/type": "xen\n"}, "xen"},
		"arm, kvm":                           {"", files{"/proc/device-tree/hypervisor/compatible": "linux,kvm\x00"}, "kvm"},
		"arm, xen":                           {"", files{"/proc/device-tree/hypervisor/compatible": "xen,xen-4.17\x00xen,xen\x00"}, "xen"},
		"arm, qemu":                          {"", files{"/proc/device-tree/fw-cfg@9020000/compatible": "qemu,fw-cfg-mmio\x00"}, "qemu"},
		"user mode":                          {"", files{"/proc/cpuinfo": "processor\t: 0\nvendor_id\t: User Mode Linux\n"}, "uml"},
		"only the flag":                      {"", files{"/proc/cpuinfo": "flags\t\t: fpu hypervisor lm\n"}, "vm-other"},
		"a flag that only sounds so":         {"", files{"/proc/cpuinfo": "flags\t\t: fpu nohypervisor\nbugs\t\t: hypervisor\n"}, "none"},
		"only the firmware's bit":            {"", files{"/sys/firmware/dmi/entries/0-0/raw": table(0x10)}, "vm-other"},
		"a signature of nobody":              {"Who Knows It", nil, "vm-other"},
		"a long table of processors":         {"", files{"/proc/cpuinfo": "flags\t\t: hypervisor\n" + strings.Repeat("x\n", 1<<20)}, "vm-other"},
	} {
		s := quiet(tree(t, c.files))
		s.cpu = func() (bool, string) { return c.signature != "", c.signature }
		if got := s.hypervisor(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestContainersAreToldApart(t *testing.T) {
	type files = map[string]string
	for name, c := range map[string]struct {
		files files
		want  string
	}{
		"none":                          {files{"/proc/1/environ": "HOME=/\x00", "/proc/vz/": "", "/proc/bc/": ""}, "none"},
		"lxc":                           {files{"/proc/1/environ": "HOME=/\x00container=lxc\x00"}, "lxc"},
		"nspawn":                        {files{"/run/systemd/container": "systemd-nspawn\n", "/run/host/container-manager": "systemd-nspawn\n"}, "systemd-nspawn"},
		"docker with a manager":         {files{"/run/systemd/container": "docker\n"}, "docker"},
		"docker":                        {files{"/.dockerenv": "", "/proc/1/environ": "PATH=/bin\x00"}, "docker"},
		"podman":                        {files{"/run/.containerenv": "engine=\"podman-4.3.1\"\n"}, "podman"},
		"podman, with docker's":         {files{"/run/.containerenv": "", "/.dockerenv": ""}, "podman"},
		"oci, by its file":              {files{"/proc/1/environ": "container=oci\x00", "/.dockerenv": ""}, "docker"},
		"oci":                           {files{"/proc/1/environ": "container=oci\x00"}, "container-other"},
		"one of years to come":          {files{"/run/systemd/container": "new-one\n"}, "container-other"},
		"openvz":                        {files{"/proc/vz/": ""}, "openvz"},
		"wsl":                           {files{"/proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n"}, "wsl"},
		"an environment that sounds so": {files{"/proc/1/environ": "mycontainer=lxc\x00X=container=lxc\x00"}, "none"},
	} {
		if got, err := quiet(tree(t, c.files)).container(); got != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// TestWhoMayNotLookIsNotTold that it is none: but systemd has said it to all.
func TestWhoMayNotLookIsNotTold(t *testing.T) {
	l := tree(t, map[string]string{"/proc/": ""})
	// A link to itself cannot be read, by root neither, and is there.
	if err := os.Symlink(l.Path("/proc/1"), l.Path("/proc/1")); err != nil {
		t.Fatal(err)
	}
	if got, err := quiet(l).container(); got != "" || err == nil {
		t.Errorf("%q, %v", got, err)
	}
	l = tree(t, map[string]string{"/proc/": "", "/run/systemd/system/": ""})
	if err := os.Symlink(l.Path("/proc/1"), l.Path("/proc/1")); err != nil {
		t.Fatal(err)
	}
	if got, err := quiet(l).container(); got != "none" || err != nil {
		t.Errorf("under systemd: %q, %v", got, err)
	}
}
