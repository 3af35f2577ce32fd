package profile

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// maxFact bounds what is read of one file, in bytes.
const maxFact = 64 << 10

// Collect looks at the machine. It starts no child process and never fails:
// what cannot be found out, is too large to be true, or comes after the end of
// ctx, is left empty. With a layout that is not the machine itself, the files
// are those under its root; kernel, memory and processors stay the machine's.
func Collect(ctx context.Context, l layout.Layout) Profile {
	p := Profile{
		Architecture: bundle.Architecture(runtime.GOARCH),
		Init:         "none",
		CPUs:         runtime.NumCPU(),
		Schema:       declaration.Schema,
		Kernel:       kernel(),
	}
	read := func(path string) []byte {
		if ctx.Err() != nil {
			return nil
		}
		return fact(path)
	}
	exists := func(paths ...string) bool {
		for _, path := range paths {
			if ctx.Err() != nil {
				return false
			}
			if _, err := os.Stat(l.Path(path)); err != nil {
				return false
			}
		}
		return true
	}

	// os-release(5): the first of the two that is there.
	release := osRelease(read(l.Path("/etc/os-release")))
	if release["ID"] == "" {
		release = osRelease(read(l.Path("/usr/lib/os-release")))
	}
	p.Distribution, p.DistributionVersion = release["ID"], release["VERSION_ID"]

	// sd_booted(3).
	if exists("/run/systemd/system") {
		p.Init = "systemd"
	}
	p.PackageManager = packageManager(release["ID"]+" "+release["ID_LIKE"], exists)
	switch {
	case exists("/usr/bin/podman"):
		p.Runtime = "podman"
	case exists("/usr/bin/dockerd"), exists("/run/docker.sock"):
		p.Runtime = "docker"
	}
	p.Hostname = hostname(l, read)
	p.MachineID = machineID(read(l.Path("/etc/machine-id")))
	p.MemoryBytes = memory(read("/proc/meminfo"))
	return p
}

// fact returns the content of a small regular file, or nil. It does not wait
// for the other end of a fifo that lies in its place.
func fact(path string) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFact+1))
	if err != nil || len(b) > maxFact {
		return nil
	}
	return b
}

// word is what a fact may be: short, and nothing that drives a terminal.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~:-]{0,127}$`)

func clean(s string) string {
	if s = strings.TrimSpace(s); word.MatchString(s) {
		return s
	}
	return ""
}

// osRelease reads the assignments of os-release(5). The values we ask for hold
// no escapes in any distribution; one that does is left out by clean.
func osRelease(b []byte) map[string]string {
	m := map[string]string{}
	for line := range bytes.Lines(b) {
		k, v, ok := strings.Cut(strings.TrimSpace(string(line)), "=")
		if !ok || strings.HasPrefix(k, "#") {
			continue
		}
		if n := len(v); n >= 2 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
			v = v[1 : n-1]
		}
		if k == "ID_LIKE" {
			m[k] = strings.TrimSpace(v)
			continue
		}
		m[k] = clean(v)
	}
	return m
}

// packageManager goes by the distribution first: on many Debian machines
// pacman is a mere tool, and the other way round.
func packageManager(ids string, exists func(...string) bool) string {
	pacman := exists("/usr/bin/pacman")
	apt := exists("/usr/bin/apt-get", "/usr/bin/dpkg")
	for _, id := range strings.Fields(ids) {
		switch {
		case (id == "arch" || id == "archarm") && pacman:
			return "pacman"
		case (id == "debian" || id == "ubuntu") && apt:
			return "apt"
		}
	}
	switch {
	case pacman && exists("/var/lib/pacman/local"):
		return "pacman"
	case apt && exists("/var/lib/dpkg/status"):
		return "apt"
	}
	return ""
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return clean(unix.ByteSliceToString(u.Release[:]))
}

func hostname(l layout.Layout, read func(string) []byte) string {
	if !l.IsMachine() {
		if h := clean(string(read(l.Path("/etc/hostname")))); h != "" {
			return h
		}
	}
	h, err := os.Hostname()
	if err != nil {
		return ""
	}
	return clean(h)
}

var machineIDForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// machineID leaves out what machine-id(5) allows in an image ("uninitialized",
// empty) and the all-zero one.
func machineID(b []byte) string {
	s := strings.TrimSpace(string(b))
	if !machineIDForm.MatchString(s) || strings.Trim(s, "0") == "" {
		return ""
	}
	return s
}

// memory reads MemTotal of proc_meminfo(5), which is in KiB.
func memory(b []byte) int64 {
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) != 3 || f[0] != "MemTotal:" || f[2] != "kB" {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			return 0
		}
		return n << 10
	}
	return 0
}

// maxAddresses bounds Addresses: a machine that runs containers can have
// thousands.
const maxAddresses = 64

// Addresses returns the machine's global unicast addresses, sorted, without
// repetition, at most 64; nil when they cannot be listed.
func Addresses() []string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var found []netip.Addr
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().IsGlobalUnicast() {
			found = append(found, p.Addr().Unmap())
		}
	}
	slices.SortFunc(found, netip.Addr.Compare)
	found = slices.Compact(found)
	var out []string
	for _, a := range found[:min(len(found), maxAddresses)] {
		out = append(out, a.String())
	}
	return out
}
