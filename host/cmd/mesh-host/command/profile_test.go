package command

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/profile"
)

func TestAProfileIsReadAtAGlance(t *testing.T) {
	const late = "it did not answer within 5 s"
	for name, c := range map[string]struct {
		f    profiled
		want string
	}{
		"all is known": {profiled{
			profile.Profile{
				Architecture: "x86_64", Kernel: "6.1.0-18-amd64", Distribution: "debian", DistributionVersion: "12", Init: "systemd", PackageManager: "apt",
				Runtime: "podman", Virtualisation: "kvm", Container: "none", Hostname: "web-1", MachineID: "9f2b1c6e5d4a4b3c8e7f60718293a4b5",
				ProductID: "4c9b0a51-2b5c-11b2-a85c-f3a1d0b4e1c7", MemoryBytes: 4 << 30, CPUs: 2, Schema: 1,
			},
			profile.Inventory{
				PackageManagerVersion: "2.6.1", RuntimeVersion: "4.3.1",
				Interfaces:  []profile.Interface{{Name: "eth0", Addresses: []string{"192.0.2.7", "2001:db8::7"}}, {Name: "wg0", Addresses: []string{"10.8.0.3"}}},
				Disks:       []profile.Disk{{Name: "nvme0n1", Bytes: 512110190592}, {Name: "sdb", Bytes: 30752000000, Rotational: true, Removable: true}},
				FileSystems: []profile.FileSystem{{Mount: "/", Type: "ext4", Bytes: 20 << 30}, {Mount: "/usr", Type: "squashfs", Bytes: 1 << 30, ReadOnly: true}},
			},
		}, `architecture       x86_64
kernel             6.1.0-18-amd64
distribution       debian 12
init               systemd
package manager    apt 2.6.1
container runtime  podman 4.3.1
virtualisation     kvm
hostname           web-1
machine id         9f2b1c6e5d4a4b3c8e7f60718293a4b5
product id         4c9b0a51-2b5c-11b2-a85c-f3a1d0b4e1c7
memory             4096 MiB
processors         2
address            eth0     192.0.2.7, 2001:db8::7
address            wg0      10.8.0.3
disk               nvme0n1  477 GiB
disk               sdb      29 GiB, rotational, removable
file system        /        ext4, 20 GiB
file system        /usr     squashfs, 1.0 GiB, read only
`},
		"nothing answered": {profiled{
			profile.Profile{Architecture: "x86_64", Init: "none", Runtime: "docker", CPUs: 1},
			profile.Inventory{Unknown: map[string]string{
				"distribution": late, "init": late, "package_manager": late, "runtime_version": late, "virtualisation": late, "container": late,
				"hostname": late, "machine_id": late, "product_id": "permission\x1b[2Jdenied", "memory_bytes": late, "addresses": late, "disks": late,
				"file_systems": late,
			}},
		}, `architecture       x86_64
kernel             unknown
distribution       unknown: it did not answer within 5 s
init               unknown: it did not answer within 5 s
package manager    unknown: it did not answer within 5 s
container runtime  docker, version unknown: it did not answer within 5 s
virtualisation     unknown: it did not answer within 5 s, container unknown: it did not answer within 5 s
hostname           unknown: it did not answer within 5 s
machine id         unknown: it did not answer within 5 s
product id         unknown: permission` + "\uFFFD" + `[2Jdenied
memory             unknown: it did not answer within 5 s
processors         1
addresses          unknown: it did not answer within 5 s
disks              unknown: it did not answer within 5 s
file systems       unknown: it did not answer within 5 s
`},
		"a machine that has little": {profiled{profile.Profile{Architecture: "aarch64", Kernel: "6.6", Init: "none", Virtualisation: "none", Container: "podman", CPUs: 4},
			profile.Inventory{}}, `architecture       aarch64
kernel             6.6
distribution       unknown
init               none
package manager    none
container runtime  none
virtualisation     podman container
hostname           none
machine id         none
product id         none
memory             unknown
processors         4
`},
	} {
		var out bytes.Buffer
		if err := c.f.write(&out); err != nil || out.String() != c.want {
			t.Errorf("%s: %v, got\n%swant\n%s", name, err, &out, c.want)
		}
	}
	in := profiled{Profile: profile.Profile{Virtualisation: "kvm", Container: "lxc"}}
	if got := in.virtualised(); got != "lxc container on kvm" {
		t.Errorf("%q", got)
	}
}

// TestAProfileForPrograms keeps the profile's facts where they always were.
func TestAProfileForPrograms(t *testing.T) {
	m := newMachine(t)
	m.put("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n")
	m.put("etc/machine-id", "not one\n")
	m.put("usr/bin/dockerd", "")
	m.put("usr/bin/apt-get", "")
	m.put("usr/bin/dpkg", "")
	m.put("var/lib/dpkg/status", "Package: apt\nVersion: 2.6.1\n")
	out, _ := m.host(0, "profile", "--json")
	var says struct {
		Distribution   string `json:"distribution"`
		PackageManager string `json:"package_manager"`
		Inventory      struct {
			Version        string            `json:"version"`
			PackageManager string            `json:"package_manager_version"`
			FileSystems    []json.RawMessage `json:"file_systems"`
			Unknown        map[string]string `json:"unknown"`
		} `json:"inventory"`
	}
	if err := json.Unmarshal([]byte(out), &says); err != nil {
		t.Fatal(err)
	}
	if says.Distribution != "debian" || says.PackageManager != "apt" || says.Inventory.PackageManager != "2.6.1" || says.Inventory.Version == "" ||
		len(says.Inventory.FileSystems) == 0 {
		t.Errorf("%s", out)
	}
	why := says.Inventory.Unknown["runtime_version"]
	if !strings.HasPrefix(why, "it does not run: there is no socket") || strings.Contains(out, "not one") {
		t.Errorf("%s", out)
	}
	if out, _ = m.host(0, "profile"); !strings.Contains(out, "\npackage manager    apt 2.6.1\ncontainer runtime  docker, version unknown: "+why[:20]) {
		t.Errorf("%s", out)
	}
}
