// Package firstnode walks the journey of a first node, from a fresh release to
// an enrolled machine, as an ordinary user in one private folder: no root, no
// service manager, no network but loopback.
//
// Up makes a release with throwaway keys, then does what the README tells a
// person to do, with the commands it names, under --root; only the service
// manager's part, starting the host, is done here. It leaves the node running.
// A second Up finds it up and says so. A step that fails prints what its
// command printed and leaves the folder to look at, if anything was started.
//
// Down ends what runs from the folder by process id, the host first so that it
// starts nothing anew, and removes the folder when nothing is left. Every
// process of the node is found by its executable, which lies in the folder:
// that also finds what outlived a host that was killed. Down is safe to repeat
// after a crash anywhere.
//
// The folder is marked by a file of ours (mesh-lab.json); a folder with other
// things in it is never used and never removed.
package firstnode

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A Node is the first node in its folder.
type Node struct {
	// Dir is the folder, absolute.
	Dir string
	// From is a folder with a release to raise the node from; empty makes one.
	From string
	// DownCommand is what a person types to end it.
	DownCommand string
	Std         cli.Stdio
	Clock       clock.Clock
}

// DefaultDir is where the node is when nobody says otherwise:
// $XDG_STATE_HOME/nox-mesh-lab, or ~/.local/state/nox-mesh-lab. Root's home is
// closed to the control plane's own user, so root's is /var/lib/nox-mesh-lab.
func DefaultDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/nox-mesh-lab", nil
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "nox-mesh-lab"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local/state/nox-mesh-lab"), err
}

// resolve makes the folder's path free of symlinks, as the kernel shows the
// executable of a process. A folder that is not there yet stays as it is named.
func (n *Node) resolve() {
	if real, err := filepath.EvalSymlinks(n.Dir); err == nil {
		n.Dir = real
	}
}

func (n *Node) path(parts ...string) string {
	return filepath.Join(append([]string{n.Dir}, parts...)...)
}

// dist is the folder the release is in.
func (n *Node) dist(pattern string) string {
	if n.From != "" {
		return filepath.Join(n.From, pattern)
	}
	return n.path("dist", pattern)
}

// machine is where the paths of the node's machine really are.
func (n *Node) machine() layout.Layout { return layout.Layout{Root: n.path("root")} }

func (n *Node) hostBinary() string { return n.machine().HostBinary(layout.FloorPrefix) }

// controllerBinary is where the bundle's declaration puts the control plane.
func (n *Node) controllerBinary() string { return n.machine().Path("/usr/local/bin/mesh-controller") }

func (n *Node) log() string { return n.path("host.log") }

// mark is the file that makes a folder ours, and remembers the host.
type mark struct {
	// Host is zero until the host was started.
	Host process `json:"host"`
	// Raised: the journey came to its end.
	Raised bool `json:"raised"`
}

const markName = "mesh-lab.json"

// claim makes the folder, or sees that it is ours or empty.
func (n *Node) claim() error {
	// Others may pass and see nothing; each secret in it is closed by itself.
	if err := durable.MkdirAll(n.Dir, 0o711); err != nil {
		return err
	}
	n.resolve()
	if err := n.ours(); err != nil {
		return err
	}
	return n.writeMark(mark{})
}

// passable refuses a folder that the control plane could not be run from: when
// root starts it, it becomes a user of its own.
func (n *Node) passable() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for dir := n.Dir; dir != "/"; dir = filepath.Dir(dir) {
		fi, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if fi.Mode()&0o001 == 0 {
			return fault.Failedf("cannot use %q: %q is closed to other users, and the control plane is one", n.Dir, dir).
				Hint("name an open place with --dir, or do it as an ordinary user")
		}
	}
	return nil
}

// ours refuses a folder that somebody else uses. One that is not there, or is
// empty, is nobody's.
func (n *Node) ours() error {
	entries, err := os.ReadDir(n.Dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(n.path(markName)); err != nil {
		return fault.Refusedf("cannot use %q: it has other things in it", n.Dir).Hint("name an empty folder with --dir")
	}
	return nil
}

func (n *Node) writeMark(m mark) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return durable.WriteFile(n.path(markName), append(b, '\n'), 0o600)
}

// host returns the host that Up started, or a zero process.
func (n *Node) host() process { return n.readMark().Host }

func (n *Node) readMark() (m mark) {
	b, err := os.ReadFile(n.path(markName))
	if err != nil || json.Unmarshal(b, &m) != nil {
		return mark{} // what runs is found by its executable
	}
	return m
}

// cleanEnv is the caller's environment without what would lead our programs
// elsewhere.
func cleanEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "NOX_") {
			env = append(env, v)
		}
	}
	return env
}
