package profile

import (
	"slices"
	"strings"
)

// container finds what systemd-detect-virt(1) --container does: by what the
// kernel shows, what the one who made the container says
// (systemd.io/CONTAINER_INTERFACE), and what the tools leave in its root.
func (s source) container() (string, error) {
	release := s.attribute("/proc/sys/kernel/osrelease")
	switch {
	case exists(s.kernel, "/proc/vz") && !exists(s.kernel, "/proc/bc"):
		return "openvz", nil
	case strings.Contains(release, "Microsoft") || strings.Contains(release, "WSL"):
		return "wsl", nil
	}
	said := s.attribute("/run/host/container-manager")
	if said == "" {
		said = s.attribute("/run/systemd/container") // systemd as PID 1 wrote it
	}
	var err error
	if said == "" {
		said, err = s.firstEnvironment("container")
	}
	switch left := s.containerFile(); {
	case said == "" && left == "":
		if err != nil && !exists(s.kernel, "/run/systemd/system") {
			return "", err
		}
		return "none", nil
	case said == "" || said == "oci" && left != "":
		return left, nil
	case slices.Contains([]string{"lxc", "lxc-libvirt", "systemd-nspawn", "docker", "podman", "rkt", "wsl", "proot", "pouch"}, said):
		return said, nil
	}
	return "container-other", nil
}

func (s source) containerFile() string {
	switch {
	case exists(s.kernel, "/run/.containerenv"):
		return "podman"
	case exists(s.kernel, "/.dockerenv"):
		return "docker"
	}
	return ""
}

// firstEnvironment is a variable of the first process.
func (s source) firstEnvironment(name string) (string, error) {
	b, err := readUpTo(s.kernel.Path("/proc/1/environ"), 2<<20) // what a kernel lets an environment be
	for v := range strings.SplitSeq(string(b), "\x00") {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return clean(value), nil
		}
	}
	return "", err
}
