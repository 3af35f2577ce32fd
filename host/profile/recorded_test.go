package profile

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// quiet is a machine whose files are all below a folder: it has no interfaces, a
// processor that says nothing, and 1000 blocks of 4096 bytes on each file system.
func quiet(l layout.Layout) source {
	return source{
		files: l, kernel: l, looks: &looks{}, asked: &answers{clock: clock.System},
		statfs: func(_ string, st *unix.Statfs_t) error {
			st.Blocks, st.Frsize, st.Bsize = 1000, 4096, 1<<20
			return nil
		},
		interfaces: func() ([]net.Interface, error) { return nil, nil },
		addresses:  func(net.Interface) ([]net.Addr, error) { return nil, nil },
		cpu:        func() (bool, string) { return false, "" },
	}
}

// recorded lays down a machine of testdata. In what the kernel shows, \0 stands
// for the byte.
func recorded(t *testing.T, name string) layout.Layout {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range a.Files {
		files["/"+f.Name] = strings.ReplaceAll(string(f.Data), `\0`, "\x00")
	}
	return tree(t, files)
}

func TestMachinesAreRecognised(t *testing.T) {
	running, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	both := []string{"/", "/usr", "/var", "/var/lib/nox-mesh"}
	for name, c := range map[string]struct {
		signature string // of the processor
		profile   Profile
		inventory Inventory
	}{
		"arch-laptop": {"", Profile{
			Distribution: "arch", Init: "systemd", PackageManager: "pacman", Runtime: "podman", Virtualisation: "none", Container: "none",
			Hostname: "thinkpad", MachineID: "9f2b1c6e5d4a4b3c8e7f60718293a4b5", ProductID: "4c9b0a51-2b5c-11b2-a85c-f3a1d0b4e1c7",
			MemoryBytes: 16373362688,
		}, Inventory{
			PackageManagerVersion: "7.0.0.r3.g7736133-1",
			Disks:                 []Disk{{"nvme0n1", 512110190592, false, false}, {"sdb", 30752000000, false, true}},
			FileSystems: []FileSystem{
				{"/", []string{"/", "/usr"}, "btrfs", 4096000, false},
				{"/var", []string{"/var", "/var/lib/nox-mesh"}, "btrfs", 4096000, false},
			},
			Unknown: map[string]string{"runtime_version": `it does not run: there is no socket "ROOT/run/podman/podman.sock"`},
		}},
		"debian-kvm": {"KVMKVMKVM\x00\x00\x00", Profile{
			Distribution: "debian", DistributionVersion: "12", Init: "systemd", PackageManager: "apt", Runtime: "docker",
			Virtualisation: "kvm", Container: "none", Hostname: "web-1", MachineID: "6f3c0f4a8a1e4a0f9b3d2c1e0f9a8b7c",
			ProductID: "6f3c0f4a-8a1e-4a0f-9b3d-2c1e0f9a8b7c", MemoryBytes: 2062761984,
		}, Inventory{
			PackageManagerVersion: "2.6.1",
			Disks:                 []Disk{{"vda", 21474836480, true, false}},
			FileSystems: []FileSystem{
				{"/", []string{"/", "/var", "/var/lib/nox-mesh"}, "ext4", 4096000, false},
				{"/usr", []string{"/usr"}, "squashfs", 4096000, true},
			},
			Unknown: map[string]string{"runtime_version": `it does not run: there is no socket "ROOT/run/docker.sock"`},
		}},
		"fedora-vmware": {"VMwareVMware", Profile{
			Distribution: "fedora", DistributionVersion: "40", Init: "systemd", Runtime: "podman", Virtualisation: "vmware", Container: "none",
			Hostname: running, MemoryBytes: 4084752384,
		}, Inventory{
			Disks:       []Disk{{"sda", 17179869184, true, false}},
			FileSystems: []FileSystem{{"/", both, "xfs", 4096000, false}},
			Unknown:     map[string]string{"runtime_version": `it does not run: there is no socket "ROOT/run/podman/podman.sock"`},
		}},
		"alpine-podman": {"KVMKVMKVM\x00\x00\x00", Profile{
			Distribution: "alpine", DistributionVersion: "3.20.3", Init: "none", Virtualisation: "kvm", Container: "podman",
			Hostname: "4f1c2a9b7e3d", MemoryBytes: 8241741824,
		}, Inventory{FileSystems: []FileSystem{{"/", both, "overlay", 4096000, false}}}},
		"board-arm": {"", Profile{
			Distribution: "debian", DistributionVersion: "12", Init: "systemd", PackageManager: "apt", Virtualisation: "none", Container: "none",
			Hostname: "raspberrypi", MachineID: "1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed", MemoryBytes: 3977617408,
		}, Inventory{
			Disks:       []Disk{{"mmcblk0", 31914983424, false, false}},
			FileSystems: []FileSystem{{"/", both, "ext4", 4096000, false}},
			Unknown:     map[string]string{"package_manager_version": "its own database does not name it"},
		}},
		"empty": {"", Profile{Init: "none", Virtualisation: "none", Container: "none", Hostname: running}, Inventory{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet(recorded(t, name))
			s.cpu = func() (bool, string) { return c.signature != "", c.signature }
			p, inv := s.find(t.Context(), runs, has)
			if want := here(t, c.profile); p != want {
				t.Errorf("got  %+v\nwant %+v", p, want)
			}
			for k, why := range inv.Unknown {
				inv.Unknown[k] = strings.ReplaceAll(why, s.files.Root, "ROOT")
			}
			if !reflect.DeepEqual(inv, c.inventory) {
				t.Errorf("got  %+v\nwant %+v", inv, c.inventory)
			}
			if again, _ := s.find(t.Context(), runs); again != p {
				t.Errorf("a second look says %+v", again)
			}
		})
	}
}

// TestAWrongPlaceIsSaid: each of these holds up nothing else, and the reason is
// one line.
func TestAWrongPlaceIsSaid(t *testing.T) {
	l := tree(t, map[string]string{
		"/etc/machine-id/": "", "/usr/bin/apt-get": "", "/usr/bin/dpkg": "", "/var/lib/dpkg/status/": "", "/sys/block": "no folder",
		"/proc/meminfo": strings.Repeat("x\n", maxFact), "/etc/hostname": "here\n", "/proc/self/mountinfo/": "", "/etc/": "", "/var/lib/pacman/": "",
	})
	if err := unix.Mkfifo(l.Path("/etc/os-release"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(l.Path("/var/lib/pacman/local"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pacmanVersion(t.Context(), l.Path("/var/lib/pacman/local")); err == nil {
		t.Error("a fifo is a database")
	}
	p, inv := quiet(l).find(t.Context(), runs, has)
	if p.Hostname != "here" || p.PackageManager != "apt" {
		t.Errorf("%+v", p)
	}
	want := []string{"disks", "distribution", "file_systems", "machine_id", "memory_bytes", "package_manager_version"}
	if got := slices.Sorted(maps.Keys(inv.Unknown)); !slices.Equal(got, want) {
		t.Errorf("%v", inv.Unknown)
	}
	for k, said := range map[string]string{
		"distribution": "is not a regular file", "memory_bytes": "is larger than 64 KiB", "package_manager_version": "is not a regular file",
		"disks": "not a directory",
	} {
		if !strings.Contains(inv.Unknown[k], said) {
			t.Errorf("%s: %q", k, inv.Unknown[k])
		}
	}
}
