package profile

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// tree makes a machine's files under a root; a name that ends in a slash is a
// directory.
func tree(t *testing.T, files map[string]string) layout.Layout {
	t.Helper()
	l := layout.Layout{Root: t.TempDir()}
	for name, content := range files {
		path := l.Path(name)
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

const id32 = "0123456789abcdef0123456789abcdef"

// here fills in what is of the program and of the machine it runs on.
func here(t *testing.T, p Profile) Profile {
	t.Helper()
	cpus, err := strconv.Atoi(says(t, "env", "-u", "OMP_NUM_THREADS", "-u", "OMP_THREAD_LIMIT", "nproc"))
	must(t, err)
	p.Architecture, p.Kernel, p.CPUs, p.Schema = says(t, "uname", "-m"), says(t, "uname", "-r"), cpus, 1
	return p
}

func TestProfileIsReadFromTheMachinesFiles(t *testing.T) {
	arch := tree(t, map[string]string{
		"/etc/os-release": "NAME=\"Arch Linux\"\nID=arch\n", "/etc/hostname": "web-1\n", "/etc/machine-id": id32 + "\n",
		"/usr/bin/pacman": "", "/run/systemd/system/": "", "/usr/bin/podman": "", "/proc/meminfo": "MemTotal: 2048 kB\n", "/proc/1/environ": "container=lxc\x00",
	})
	s := quiet(arch)
	s.cpu = func() (bool, string) { return true, "KVMKVMKVM\x00\x00\x00" }
	want := here(t, Profile{
		Distribution: "arch", Init: "systemd", PackageManager: "pacman", Runtime: "podman", Virtualisation: "kvm", Container: "lxc",
		Hostname: "web-1", MachineID: id32, MemoryBytes: 2 << 20,
	})
	if p, _ := s.find(t.Context(), runs); p != want {
		t.Errorf("got %+v\nwant %+v", p, want)
	}
	// Of a tree on this machine the kernel's facts are this machine's: whose
	// hypervisor and container are in TestVirtualisationIsWhatSystemdSays.
	p := Collect(t.Context(), arch)
	if p.Distribution != "arch" || p.Hostname != "web-1" || p.MachineID != id32 || p.Runtime != "podman" || p.Kernel != says(t, "uname", "-r") || p.ProductID != "" {
		t.Errorf("got %+v", p)
	}
	if kib := says(t, "awk", "/^MemTotal:/ {print $2}", "/proc/meminfo"); strconv.FormatInt(p.MemoryBytes/1024, 10) != kib {
		t.Errorf("%d bytes, the kernel says %s KiB", p.MemoryBytes, kib)
	}
	// Debian with pacman as a mere tool.
	debian := tree(t, map[string]string{
		"/usr/lib/os-release": "# comment\nID='debian'\nVERSION_ID=\"12\"\n", "/usr/bin/pacman": "", "/var/lib/pacman/local/": "",
		"/usr/bin/apt-get": "", "/usr/bin/dpkg": "", "/usr/bin/dockerd": "",
	})
	p = Collect(t.Context(), debian)
	if p.Distribution != "debian" || p.DistributionVersion != "12" || p.PackageManager != "apt" || p.Init != "none" || p.Runtime != "docker" {
		t.Errorf("got %+v", p)
	}
	derived := tree(t, map[string]string{"/etc/os-release": "ID=manjaro\nID_LIKE=\"something arch\"\n", "/usr/bin/pacman": ""})
	if p := Collect(t.Context(), derived); p.PackageManager != "pacman" {
		t.Errorf("got %+v", p)
	}
	unknown := tree(t, map[string]string{"/usr/bin/pacman": "", "/var/lib/pacman/local/": ""})
	if p := Collect(t.Context(), unknown); p.PackageManager != "pacman" {
		t.Errorf("got %+v", p)
	}
}

func TestFactThatCannotBeTrueIsLeftEmpty(t *testing.T) {
	// A root that does not say its name has that of the machine it is on.
	running, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]map[string]string{
		"nothing":       {},
		"too large":     {"/etc/os-release": "ID=arch\n" + strings.Repeat("#\n", maxFact), "/etc/machine-id": strings.Repeat("a", maxFact+1)},
		"control bytes": {"/etc/os-release": "ID=\"a\x1b[2J\"\n", "/etc/hostname": "a\x00b", "/etc/machine-id": "uninitialized\n"},
		"zero id":       {"/etc/machine-id": strings.Repeat("0", 32)},
		"directories":   {"/etc/os-release/": "", "/etc/machine-id/": "", "/etc/hostname/": ""},
		"two lines":     {"/etc/hostname": "a\nb\n"},
	} {
		p := Collect(t.Context(), tree(t, files))
		if p.Distribution != "" || p.Hostname != running || p.MachineID != "" || p.PackageManager != "" || p.Init != "none" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestCollectDoesNotWaitForAFifo(t *testing.T) {
	l := tree(t, map[string]string{"/etc/": ""})
	for _, f := range []string{"/etc/os-release", "/etc/machine-id", "/etc/hostname"} {
		if err := syscall.Mkfifo(l.Path(f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if p := Collect(t.Context(), l); p.Distribution != "" || p.MachineID != "" {
		t.Errorf("got %+v", p)
	}
}

func TestCollectAfterTheEndReadsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := tree(t, map[string]string{"/etc/os-release": "ID=arch\n", "/usr/bin/podman": ""})
	if p := Collect(ctx, l); p.Distribution != "" || p.Runtime != "" || p.Architecture == "" {
		t.Errorf("got %+v", p)
	}
}

func TestMemoryIsReadInKiB(t *testing.T) {
	for s, want := range map[string]int64{
		"MemTotal:       16384 kB\nMemFree: 1 kB\n": 16 << 20, "MemTotal: x kB\n": 0, "MemTotal: -1 kB\n": 0,
		"MemTotal: 99999999999999999 kB\n": 0, "MemTotal: 1 MB\n": 0, "": 0,
	} {
		if got := memory([]byte(s)); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}

func FuzzOSRelease(f *testing.F) {
	f.Add([]byte("ID=arch\nVERSION_ID=\"12\"\n"))
	f.Add([]byte("ID=\"\n='\nID_LIKE=\"\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if id := osRelease(b)["ID"]; len(id) > 128 || strings.ContainsFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
			t.Fatalf("%q", id)
		}
	})
}
