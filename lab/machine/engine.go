package machine

import (
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// EngineSocket is where the engine of a machine with Engine answers, with the
// Docker API.
const EngineSocket = "/run/podman/podman.sock"

// Engine gives a machine a container engine: podman with runc, which answers on
// EngineSocket and brings containers back after a reboot. In a machine only the
// host's network works for containers, and no limits do. The first machine with
// an engine on a computer makes a root of its own.
func Engine(m *Machine) { m.engine = true }

const enginePackages = basePackages + ",podman,runc,netavark,conmon"

// engineConf is what lets podman run containers in a machine: no limit above
// the machine's own, no keyring (nspawn's filter blocks it), no cgroup limits
// (there are no controllers), and runc, as crun wants more of cgroups.
const engineConf = `[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
keyring = false
pids_limit = 0
[network]
network_backend = "netavark"
[engine]
runtime = "runc"
`

// prepareEngine returns the root for a machine with an engine, and puts the
// engine's configuration on the machine's disk.
func (m *Machine) prepareEngine() (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	door, err := lockCache(cache)
	if err != nil {
		return "", err
	}
	defer door.Close()
	root, err := preparedRoot(cache, enginePackages)
	if err != nil {
		return "", err
	}
	for _, d := range []string{m.containers(), filepath.Join(m.dir, "upper/etc/containers")} {
		if err := durable.MkdirAll(d, 0o755); err != nil {
			return "", err
		}
	}
	conf := filepath.Join(m.dir, "upper/etc/containers/containers.conf")
	return root, durable.WriteFile(conf, []byte(engineConf), 0o644)
}

// containers is the engine's storage: its overlays cannot lie on the machine's.
func (m *Machine) containers() string { return filepath.Join(m.dir, "containers") }

func (m *Machine) engineArgs() []string {
	return []string{
		"--bind=" + m.containers() + ":/var/lib/containers",
		// runc asks for the device filter, which is a BPF program.
		"--system-call-filter=bpf @keyring",
	}
}
