package profile

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// says runs a program that knows a fact of this machine, or skips the test where
// it is not installed. Its exit status is not looked at: systemd-detect-virt's
// is 1 for "none".
func says(t *testing.T, program string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not here", program)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("%s: %v", program, err)
	}
	return strings.TrimSpace(string(out))
}

// newer are names that systemd-detect-virt has learnt since Debian 12's, and what
// it called them before.
var newer = map[string]string{"google": "kvm", "apple": "vm-other", "sre": "vm-other"}

func TestVirtualisationIsWhatSystemdSays(t *testing.T) {
	p := Collect(t.Context(), layout.Layout{})
	if vm := says(t, "systemd-detect-virt", "--vm"); p.Virtualisation != vm && newer[p.Virtualisation] != vm {
		t.Errorf("%q, systemd says %q", p.Virtualisation, vm)
	}
	if c := says(t, "systemd-detect-virt", "--container"); p.Container != c {
		t.Errorf("%q, systemd says %q", p.Container, c)
	}
}

func TestDisksAreWhatLsblkSays(t *testing.T) {
	var list struct {
		Devices []struct {
			Name, Type string
			Size       int64
			Rota, Rm   bool
		} `json:"blockdevices"`
	}
	if err := json.Unmarshal([]byte(says(t, "lsblk", "-J", "-b", "-d", "-o", "NAME,TYPE,SIZE,ROTA,RM")), &list); err != nil {
		t.Fatal(err)
	}
	var want []Disk
	for _, d := range list.Devices {
		flash, isFlash := strings.CutPrefix(d.Name, "mmcblk") // "mmcblk0" is a disk, "mmcblk0boot0" is not
		if d.Type == "disk" && d.Size > 0 && !strings.HasPrefix(d.Name, "zram") && !strings.HasPrefix(d.Name, "ram") &&
			!(isFlash && strings.Trim(flash, "0123456789") != "") {
			want = append(want, Disk{d.Name, d.Size, d.Rota, d.Rm})
		}
	}
	slices.SortFunc(want, func(a, b Disk) int { return strings.Compare(a.Name, b.Name) })
	if got, err := machine(layout.Layout{}).disks(); err != nil || !slices.Equal(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

func TestFileSystemsAreWhatFindmntSays(t *testing.T) {
	_, inv := Look(t.Context(), layout.Layout{})
	if len(inv.FileSystems) == 0 {
		t.Fatal(inv.Unknown)
	}
	for _, f := range inv.FileSystems {
		for _, path := range f.Holds {
			at := path
			if _, err := os.Stat(at); err != nil {
				continue // findmnt wants it to be there
			}
			var list struct {
				FileSystems []struct {
					Target, FSType, Options string
					Size                    json.Number
				}
			}
			if err := json.Unmarshal([]byte(says(t, "findmnt", "-J", "-b", "-o", "TARGET,FSTYPE,OPTIONS,SIZE", "-T", at)), &list); err != nil {
				t.Fatal(err)
			}
			w := list.FileSystems[len(list.FileSystems)-1]
			size, err := strconv.ParseInt(w.Size.String(), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if f.Mount != w.Target || f.Type != w.FSType || f.Bytes != size || f.ReadOnly != slices.Contains(strings.Split(w.Options, ","), "ro") {
				t.Errorf("%s: %+v, findmnt says %+v", path, f, w)
			}
		}
	}
}

func TestAddressesAreWhatIPSays(t *testing.T) {
	var list []link
	ip(t, &list, "address")
	got, _, err := machine(layout.Layout{}).ownInterfaces()
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]bool{}
	for _, i := range got {
		for _, a := range i.Addresses {
			ours[i.Name+" "+a] = true
		}
	}
	if len(ours) == maxAddresses {
		t.Skip("this machine has more addresses than are told")
	}
	for _, i := range list {
		inward := i.Info.Kind == "bridge" && leadsNowhere(t, i.Name)
		for _, a := range i.Addresses {
			own := a.Scope == "global" && slices.Contains(i.Flags, "UP") && !a.Temporary && !a.Deprecated && !a.Tentative && !a.Dadfailed && !inward
			if key := i.Name + " " + a.Local; own != ours[key] {
				t.Errorf("%s: ip says %+v, told %v", key, a, ours[key])
			}
			delete(ours, i.Name+" "+a.Local)
		}
	}
	if len(ours) > 0 {
		t.Errorf("ip does not know %v", ours)
	}
}

// A link is what ip(8) says of one.
type link struct {
	Name  string `json:"ifname"`
	Flags []string
	Info  struct {
		Kind string `json:"info_kind"`
	} `json:"linkinfo"`
	Addresses []struct {
		Local, Scope                                string
		Temporary, Deprecated, Tentative, Dadfailed bool
	} `json:"addr_info"`
}

func ip(t *testing.T, into any, args ...string) {
	t.Helper()
	said := says(t, "ip", append([]string{"-details", "-json"}, args...)...)
	if said == "" {
		said = "[]"
	}
	if err := json.Unmarshal([]byte(said), into); err != nil {
		t.Fatalf("%s: %v", said, err)
	}
}

// leadsNowhere says that ip knows nothing of a bridge that is not a container's or
// a virtual machine's.
func leadsNowhere(t *testing.T, bridge string) bool {
	t.Helper()
	var ports []link
	ip(t, &ports, "link", "show", "master", bridge)
	for _, p := range ports {
		if p.Name != "" && p.Info.Kind != "veth" && p.Info.Kind != "tun" { // ip leaves {} for each of the others
			return false
		}
	}
	for _, family := range []string{"-4", "-6"} {
		var routes []struct{ Dev string }
		ip(t, &routes, family, "route", "show", "default", "dev", bridge)
		if len(routes) > 0 {
			return false
		}
	}
	return true
}

func TestThePackageManagersVersionIsWhatItSays(t *testing.T) {
	p, inv := Look(t.Context(), layout.Layout{})
	switch p.PackageManager {
	case "apt":
		if v := says(t, "dpkg-query", "-W", "-f", "${Version}", "apt"); inv.PackageManagerVersion != v {
			t.Errorf("%q, dpkg says %q", inv.PackageManagerVersion, v)
		}
	case "pacman":
		if v := says(t, "pacman", "-Q", "pacman"); "pacman "+inv.PackageManagerVersion != v {
			t.Errorf("%q, pacman says %q", inv.PackageManagerVersion, v)
		}
	default:
		t.Skip("this machine has neither apt nor pacman")
	}
}

// TestARealPodmanSaysItsVersion: it is handed its socket as systemd does
// (sd_listen_fds(3)), so that nobody has to wait until it is there.
func TestARealPodmanSaysItsVersion(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: podman's storage is root's")
	}
	version := strings.TrimPrefix(says(t, "podman", "--version"), "podman version ")
	l := short(t)
	socket := l.Path("/run/podman/podman.sock")
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	f, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_FDS=1 LISTEN_PID=$$ exec podman --root "$0/root" --runroot "$0/run" --storage-driver vfs system service --time 0`, short(t).Root)
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	defer end()
	// A first start takes longer than a profile waits.
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if got, err := quiet(l).engineVersion(patient); got != version || err != nil {
		end()
		t.Fatalf("%q, it says %q: %v\n%s", got, version, err, &log)
	}
}

// BenchmarkCollect and BenchmarkLook are what a start and an enrolment wait for.
func BenchmarkCollect(b *testing.B) {
	for b.Loop() {
		Collect(b.Context(), layout.Layout{})
	}
}

func BenchmarkLook(b *testing.B) {
	for b.Loop() {
		Look(b.Context(), layout.Layout{})
	}
}
