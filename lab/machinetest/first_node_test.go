//go:build machine

package machinetest

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// TestFirstNode is the first page of the README: a tarball, three commands, and
// a machine that manages itself, also after a reboot.
func TestFirstNode(t *testing.T) {
	for name, offline := range map[string]bool{"over the network": false, "from a stick": true} {
		t.Run(name, func(t *testing.T) {
			tarball, bundle := artefact(t, "nox-mesh-host-*.tar.gz"), artefact(t, "*.bundle.tar")
			lab := machine.Start(t)
			var alpha *machine.Machine
			if offline {
				alpha = lab.Boot("alpha", machine.Offline)
				alpha.Put("/media/stick/"+filepath.Base(tarball), 0o644, tarball)
				alpha.Put("/root/"+filepath.Base(bundle), 0o644, bundle)
				alpha.Must("tar", "-C", "/root", "-xzf", "/media/stick/"+filepath.Base(tarball))
			} else {
				alpha = lab.Boot("alpha")
				site := serve(t, lab, release(t))
				alpha.Must("bash", "-euo", "pipefail", "-c", "cd /root; curl -fsSL "+site+filepath.Base(tarball)+" | tar -xz")
				alpha.Must("curl", "-fsSL", "-o", "/root/"+filepath.Base(bundle), site+filepath.Base(bundle))
			}

			alpha.Must("/root/nox-mesh-host-"+firstnode.Version+"/mesh-host", "install")
			if got := status(t, alpha).State; got != "hosted" {
				t.Errorf("after install the machine is %q", got)
			}
			alpha.Must("mesh-host", "bootstrap", "/root/"+filepath.Base(bundle))
			active(t, alpha)
			before := alpha.Must("systemctl", "show", "-P", "MainPID", "nox-mesh-controller")

			alpha.Must("bash", "-euo", "pipefail", "-c", "mesh-controller token create | mesh-host enrol -")
			awaitLink(t, alpha)
			if after := alpha.Must("systemctl", "show", "-P", "MainPID", "nox-mesh-controller"); after != before {
				t.Errorf("enrolling restarted the control plane: process %s is now %s", before, after)
			}
			if got := alpha.Must("mesh-controller", "nodes"); !strings.Contains(got, "alpha") {
				t.Errorf("the control plane does not know its node:\n%s", got)
			}
			owned := alpha.Must("mesh-host", "owned")
			if !strings.Contains(owned, "mesh-controller") {
				t.Errorf("the host does not own the control plane:\n%s", owned)
			}

			alpha.Reboot()
			active(t, alpha)
			awaitLink(t, alpha)
			if got := alpha.Must("systemctl", "is-system-running"); got != "running" {
				t.Errorf("after the reboot the machine is %q: %s", got, alpha.Must("systemctl", "--failed", "--no-legend"))
			}
		})
	}
}

// serve serves a folder to the machines of a lab and returns its URL.
func serve(t *testing.T, lab *machine.Lab, dir string) string {
	t.Helper()
	listener := lab.Listen(80)
	server := &http.Server{Handler: http.FileServer(http.Dir(dir))}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close(); <-done })
	return "http://" + listener.Addr().String() + "/"
}

// report is what these tests read of `mesh-host status --json`.
type report struct {
	State       string
	Declaration struct{ Source string }
}

func status(t *testing.T, m *machine.Machine) (r report) {
	t.Helper()
	out := m.Must("mesh-host", "status", "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("mesh-host status --json is no JSON: %v\n%s", err, out)
	}
	return r
}

// active sees that the host and the control plane run.
func active(t *testing.T, m *machine.Machine) {
	t.Helper()
	for _, unit := range []string{"mesh-host", "nox-mesh-controller"} {
		if out, err := m.Run(t.Context(), "systemctl", "is-active", unit); err != nil {
			log, _ := m.Run(t.Context(), "journalctl", "-u", unit, "--no-pager", "-n", "30", "-o", "cat")
			t.Fatalf("%s is %s on %s:\n%s", unit, out, m.Name(), log)
		}
	}
}

// awaitLink waits until a node has its declaration from the control plane.
func awaitLink(t *testing.T, m *machine.Machine) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for {
		r := status(t, m)
		if r.State == "enrolled" && r.Declaration.Source == "link" {
			return
		}
		if time.Now().After(end) {
			log, _ := m.Run(t.Context(), "journalctl", "-u", "mesh-host", "--no-pager", "-n", "30", "-o", "cat")
			t.Fatalf("%s is %q by %q after a minute:\n%s", m.Name(), r.State, r.Declaration.Source, log)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
