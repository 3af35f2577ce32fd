//go:build machine

package machinetest

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// TestI10ANodeLeaves its mesh: while the control plane hears it, after a kill in the
// middle of it, and when the control plane is gone for ever. In the end nothing was
// ever there. The machine of the control plane leaves last.
func TestI10ANodeLeaves(t *testing.T) {
	tarball, bundle := artefact(t, "nox-mesh-host-*.tar.gz"), artefact(t, "*.bundle.tar")
	lab := machine.Start(t)
	alpha, beta := lab.Boot("alpha"), lab.Boot("beta")
	for _, m := range []*machine.Machine{alpha, beta} {
		m.Put("/root/"+filepath.Base(tarball), 0o644, tarball)
		m.Must("tar", "-C", "/root", "-xzf", "/root/"+filepath.Base(tarball))
	}
	before := listing(beta)
	for _, m := range []*machine.Machine{alpha, beta} {
		m.Must("/root/nox-mesh-host-"+firstnode.Version+"/mesh-host", "install")
	}
	alpha.Put("/root/"+filepath.Base(bundle), 0o644, bundle)
	alpha.Must("mesh-host", "bootstrap", "/root/"+filepath.Base(bundle))
	alpha.Must("bash", "-euo", "pipefail", "-c", "mesh-controller token create | mesh-host enrol -")
	awaitLink(t, alpha)
	alpha.WriteFile("/root/web.json", 0o600, `{"schema": 1, "name": "web", "resources": [
		{"id": "page", "type": "file", "path": "/srv/page", "content": "hello\n"},
		{"id": "sleeper", "type": "process", "name": "sleeper", "command": ["/bin/sleep", "infinity"], "user": "nobody"}]}`)
	alpha.Must("mesh-controller", "declare", "web", "/root/web.json", "--on", "every")
	join := func() {
		t.Helper()
		token := alpha.Must("mesh-controller", "token", "create")
		if out, err := beta.Pipe(t.Context(), strings.NewReader(token), "mesh-host", "enrol", "-"); err != nil {
			t.Fatalf("cannot enrol beta: %v\n%s", err, out)
		}
		awaitLink(t, beta)
		await(t, "beta has what is declared", func() bool {
			out, _ := beta.Run(t.Context(), "systemctl", "is-active", "nox-sleeper")
			return out == "active" && holds(t, beta, "/srv/page", "hello\n")
		})
	}
	bare := func(when string) {
		t.Helper()
		if got := status(t, beta).State; got != "hosted" {
			t.Errorf("%s: beta is %q", when, got)
		}
		if has(t, beta, "/srv/page") || has(t, beta, "/var/lib/nox-mesh/host/identity.json") || beta.Must("find", "/etc/systemd", "/run/systemd/system", "-name", "nox-sleeper*") != "" {
			t.Errorf("%s: something is there", when)
		}
		if out, _ := beta.Run(t.Context(), "pgrep", "-x", "sleep"); out != "" {
			t.Errorf("%s: the process runs: %s", when, out)
		}
	}

	join()
	if said := says(t, beta, 2, "mesh-host", "retire"); !strings.Contains(said, "--yes") {
		t.Errorf("asked nobody: %s", said)
	}
	if said := beta.Must("mesh-host", "retire", "--dry-run"); !strings.Contains(said, "remove") || !strings.Contains(said, "file:/srv/page") || !strings.Contains(said, "leaves mesh") {
		t.Errorf("a dry run: %s", said)
	}
	if said := beta.Must("mesh-host", "retire", "--yes"); !strings.Contains(said, "the control plane knows") {
		t.Errorf("retire says: %s", said)
	}
	bare("told")
	node := ""
	for line := range strings.Lines(alpha.Must("mesh-controller", "nodes", "--all")) {
		if strings.HasPrefix(line, "beta") && strings.Contains(line, "retired") {
			node = strings.Fields(line)[0]
		}
	}
	if got := alpha.Must("mesh-controller", "show", node, "--json"); !strings.Contains(got, `"retire"`) {
		t.Errorf("the control plane has no last report:\n%s", got)
	}

	// Killed in the middle, which something that cannot go makes last.
	join()
	beta.Must("chattr", "+i", "/srv/page")
	if said := says(t, beta, 4, "mesh-host", "retire", "--yes"); !strings.Contains(said, "file:/srv/page") {
		t.Errorf("what could not be: %s", said)
	}
	if out := beta.Must("mesh-host", "status"); !strings.Contains(out, "being retired") {
		t.Errorf("status:\n%s", out)
	}
	beta.Must("systemctl", "kill", "--signal=KILL", "mesh-host")
	await(t, "the host is back, and has its link", func() bool { return status(t, beta).State == "enrolled" })
	says(t, beta, 4, "mesh-host", "reconcile")
	if out, _ := beta.Run(t.Context(), "systemctl", "is-active", "nox-sleeper"); out == "active" {
		t.Error("the old declaration was applied again")
	}
	beta.Must("chattr", "-i", "/srv/page")
	beta.Must("mesh-host", "retire", "--yes")
	bare("again")

	// Gone for ever.
	join()
	alpha.PowerOff()
	await(t, "beta says it is alone", func() bool { return status(t, beta).State == "disconnected" })
	if said := beta.Must("mesh-host", "retire", "--yes"); !strings.Contains(said, "could not be told") {
		t.Errorf("retire says: %s", said)
	}
	bare("alone")
	beta.Must("mesh-host", "uninstall", "--yes", "--purge")
	after := slices.DeleteFunc(listing(beta), func(l string) bool { return strings.HasPrefix(l, "/run/systemd/system ") })
	same(t, "the last day of beta", slices.DeleteFunc(before, func(l string) bool { return strings.HasPrefix(l, "/run/systemd/system ") }), after)

	// The control plane's own.
	lab.Boot("alpha")
	awaitLink(t, alpha)
	if said := says(t, alpha, 3, "mesh-host", "retire", "--yes"); !strings.Contains(said, "--last") || !strings.Contains(said, "takes the control plane away") {
		t.Errorf("alpha: %s", said)
	}
	active(t, alpha)
	out := alpha.Must("mesh-host", "retire", "--yes", "--last", "--json")
	var r struct {
		Forgotten bool
		Left      []string
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || !r.Forgotten || len(r.Left) != 0 {
		t.Errorf("%v: %s", err, out)
	}
	if got := status(t, alpha).State; got != "hosted" {
		t.Errorf("alpha is %q", got)
	}
	if out, _ := alpha.Run(t.Context(), "systemctl", "is-active", "nox-mesh-controller"); out == "active" {
		t.Error("the control plane runs")
	}
}

// TestWhatIsLeftUnmanagedGoesOn: nobody looks after it any more, and it is there after
// a reboot without a host; a host that comes again takes it as it is.
func TestWhatIsLeftUnmanagedGoesOn(t *testing.T) {
	m, floor := unpackedOn(t, machine.Start(t), "alpha")
	m.Must(floor, "install")
	process := sleeper(m)
	m.Must("mesh-host", "retire", "--yes", "--keep-resources")
	if got := m.Must("mesh-host", "owned"); !strings.Contains(got, "owns nothing") {
		t.Errorf("the host owns:\n%s", got)
	}
	if said := says(t, m, 2, "mesh-host", "uninstall", "--yes", "--purge"); !strings.Contains(said, "nox-sleeper") {
		t.Errorf("a purge under it: %s", said)
	}
	m.Must("mesh-host", "uninstall", "--yes")
	if has(t, m, "/usr/local/bin/mesh-host") || mainPID(m, "nox-sleeper") != process || !holds(t, m, "/srv/page", "hello\n") {
		t.Error("the binary is there, or what was left is not")
	}
	m.Reboot()
	process = mainPID(m, "nox-sleeper")
	if out, _ := m.Run(t.Context(), "systemctl", "is-active", "nox-sleeper"); out != "active" {
		t.Errorf("after a reboot it is %q", out)
	}
	m.Must(floor, "install")
	m.Must("mesh-host", "apply", "/root/web.json")
	if got := mainPID(m, "nox-sleeper"); got != process {
		t.Errorf("it was restarted: %s is now %s", process, got)
	}
}
