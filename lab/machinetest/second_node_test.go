//go:build machine

package machinetest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// TestSecondNode is the second journey of the README and what follows from it:
// a declaration reaches an idle node at once, drift is undone by the timer, the
// node holds what it was told while nobody tells it, and comes back by itself.
func TestSecondNode(t *testing.T) {
	tarball, bundle := artefact(t, "nox-mesh-host-*.tar.gz"), artefact(t, "*.bundle.tar")
	lab := machine.Start(t)
	alpha, beta := lab.Boot("alpha"), lab.Boot("beta")
	for _, m := range []*machine.Machine{alpha, beta} {
		m.Put("/root/"+filepath.Base(tarball), 0o644, tarball)
		m.Must("tar", "-C", "/root", "-xzf", "/root/"+filepath.Base(tarball))
		m.Must("/root/nox-mesh-host-"+firstnode.Version+"/mesh-host", "install")
	}
	alpha.Put("/root/"+filepath.Base(bundle), 0o644, bundle)
	alpha.Must("mesh-host", "bootstrap", "/root/"+filepath.Base(bundle))
	alpha.Must("bash", "-euo", "pipefail", "-c", "mesh-controller token create | mesh-host enrol -")

	// The timer, shortened: a reload is enough.
	beta.WriteFile("/etc/nox-mesh/host.toml", 0o644, "reconcile_interval = \"1s\"\n")
	beta.Must("systemctl", "reload", "mesh-host")
	token := alpha.Must("mesh-controller", "token", "create")
	if out, err := beta.Pipe(t.Context(), strings.NewReader(token), "mesh-host", "enrol", "-"); err != nil {
		t.Fatalf("cannot enrol beta: %v\n%s", err, out)
	}
	awaitLink(t, beta)

	const page = "/srv/page"
	alpha.WriteFile("/root/web.json", 0o600, `{"schema": 1, "name": "web", "resources": [
		{"id": "page", "type": "file", "path": "`+page+`", "content": "hello\n"},
		{"id": "sleeper", "type": "process", "name": "sleeper", "command": ["/bin/sleep", "infinity"], "user": "nobody"}]}`)
	declared := time.Now()
	alpha.Must("mesh-controller", "declare", "web", "/root/web.json", "--on", "node=beta")
	await(t, "the page is on beta", func() bool { return holds(t, beta, page, "hello\n") })
	t.Logf("from declare to the page: %d ms", time.Since(declared).Milliseconds())
	await(t, "the process is up", func() bool {
		out, _ := beta.Run(t.Context(), "systemctl", "is-active", "nox-sleeper")
		return out == "active"
	})
	await(t, "alpha knows", func() bool { return strings.Contains(alpha.Must("mesh-controller", "nodes"), "2/2") })

	// Somebody's hand.
	beta.WriteFile(page, 0o644, "HELLO\n")
	await(t, "the timer undoes the drift", func() bool { return holds(t, beta, page, "hello\n") })
	if got := beta.Must("mesh-host", "history"); !strings.Contains(got, "1 repaired") || !strings.Contains(got, "timer") {
		t.Errorf("the drift is not in the history:\n%s", got)
	}

	// Nobody there.
	sleeper := beta.Must("systemctl", "show", "-P", "MainPID", "nox-sleeper")
	alpha.PowerOff()
	await(t, "beta says it is alone", func() bool { return status(t, beta).State == "disconnected" })
	beta.Must("rm", page)
	await(t, "beta holds its page alone", func() bool { return holds(t, beta, page, "hello\n") })
	beta.Must("systemctl", "restart", "mesh-host")
	beta.Must("rm", page)
	await(t, "and after a restart", func() bool { return holds(t, beta, page, "hello\n") })

	// And back.
	lab.Boot("alpha")
	awaitLink(t, beta)
	awaitLink(t, alpha)
	if after := beta.Must("systemctl", "show", "-P", "MainPID", "nox-sleeper"); after != sleeper {
		t.Errorf("the process was restarted with the host: %s is now %s", sleeper, after)
	}
	alpha.Must("mesh-controller", "undeclare", "web")
	await(t, "what is no longer declared is gone", func() bool {
		out, err := beta.Run(t.Context(), "bash", "-c", "! test -e "+page+" && ! systemctl cat nox-sleeper 2>&1")
		return err == nil || strings.Contains(out, "No files found") && !strings.Contains(out, page)
	})
	if got := beta.Must("mesh-host", "owned"); !strings.Contains(got, "owns nothing") {
		t.Errorf("beta still owns:\n%s", got)
	}
}

func holds(t *testing.T, m *machine.Machine, path, text string) bool {
	t.Helper()
	out, err := m.Run(t.Context(), "cat", path)
	return err == nil && strings.TrimSpace(out) == strings.TrimSpace(text)
}

// await waits for something that other machines do in their own time.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	awaitFor(t, time.Minute, what, ok)
}

// awaitFor is await for what takes its time.
func awaitFor(t *testing.T, long time.Duration, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(long)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("%s passed, and not yet: %s", long, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
