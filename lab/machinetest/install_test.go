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

// newer is the version after firstnode.Version.
const newer = "0.0.1"

// newerRelease returns the tarball of a release of the same source and
// publisher, as a newer version.
func newerRelease(t *testing.T) string {
	t.Helper()
	return one(t, built(t, newer, nil), "nox-mesh-host-*.tar.gz")
}

// TestInstallFromTheFirstDayToTheLast is what happens to a machine over the
// years: an install, an edit, a second install, an upgrade under running
// processes, an uninstall that leaves them, an install that finds them again,
// and the last uninstall, after which nothing was ever there.
func TestInstallFromTheFirstDayToTheLast(t *testing.T) {
	first, next := artefact(t, "nox-mesh-host-*.tar.gz"), newerRelease(t)
	alpha := machine.Start(t).Boot("alpha", machine.Offline)
	for _, tarball := range []string{first, next} {
		alpha.Put("/root/"+filepath.Base(tarball), 0o644, tarball)
		alpha.Must("tar", "-C", "/root", "-xzf", "/root/"+filepath.Base(tarball))
	}
	old, upgrade := "/root/nox-mesh-host-"+firstnode.Version+"/mesh-host", "/root/nox-mesh-host-"+newer+"/mesh-host"
	before := listing(alpha)

	alpha.Must(old, "install")
	if got := running(t, alpha); got != firstnode.Version {
		t.Errorf("after install version %q runs", got)
	}

	// A person's edit, and the same tarball again.
	const config = "reconcile_interval = \"1h\"\n"
	alpha.WriteFile("/etc/nox-mesh/host.toml", 0o644, config)
	host := mainPID(alpha, "mesh-host")
	laid := listing(alpha)
	var again struct{ Changed, Kept []string }
	if err := json.Unmarshal([]byte(alpha.Must(old, "install", "--json")), &again); err != nil {
		t.Fatal(err)
	}
	if len(again.Changed) != 0 || !slices.Equal(again.Kept, []string{"/etc/nox-mesh/host.toml"}) {
		t.Errorf("the second install says %+v", again)
	}
	if got := alpha.ReadFile("/etc/nox-mesh/host.toml"); got != config {
		t.Errorf("the person's configuration is %q", got)
	}
	same(t, "the second install", laid, listing(alpha))
	if got := mainPID(alpha, "mesh-host"); got != host {
		t.Errorf("the second install restarted the host: %s is now %s", host, got)
	}

	// An upgrade under a running process.
	const page = "/srv/page"
	alpha.WriteFile("/root/web.json", 0o600, `{"schema": 1, "name": "web", "generation": 1, "resources": [
		{"id": "page", "type": "file", "path": "`+page+`", "content": "hello\n"},
		{"id": "sleeper", "type": "process", "name": "sleeper", "command": ["/bin/sleep", "infinity"], "user": "nobody"}]}`)
	alpha.Must("mesh-host", "apply", "/root/web.json")
	sleeper := mainPID(alpha, "nox-sleeper")
	alpha.Must(upgrade, "install")
	await(t, "the new version runs", func() bool { return running(t, alpha) == newer })
	if got := mainPID(alpha, "mesh-host"); got == host {
		t.Errorf("the host is still process %s", host)
	}
	if got := alpha.Must("systemctl", "show", "-P", "NRestarts", "-P", "Result", "mesh-host"); !strings.Contains(got, "success") {
		t.Errorf("the old host did not end well:\n%s", got)
	}
	if got := mainPID(alpha, "nox-sleeper"); got != sleeper {
		t.Errorf("the upgrade restarted the process: %s is now %s", sleeper, got)
	}
	t.Run("R-05 the process crashes", func(t *testing.T) {
		lives := func() string {
			return alpha.Must("systemctl", "show", "-p", "MainPID,NRestarts,InvocationID", "mesh-host")
		}
		before, child := lives(), alpha.Must("pgrep", "-P", sleeper)
		alpha.Must("kill", "-SEGV", child)
		await(t, "the process is back", func() bool {
			again, err := alpha.Run(t.Context(), "pgrep", "-P", sleeper, "-x", "sleep")
			return err == nil && again != child
		})
		if after := lives(); after != before {
			t.Errorf("the host that was\n%s\nis\n%s", before, after)
		}
		if got := mainPID(alpha, "nox-sleeper"); got != sleeper {
			t.Errorf("what keeps the process up was restarted: %s is now %s", sleeper, got)
		}
	})
	alpha.Must("cmp", "/var/lib/nox-mesh/launcher/mesh-host", old) // an upgrade does not touch what is proven
	if out, err := alpha.Run(t.Context(), old, "install"); machine.ExitCode(err) != 3 {
		t.Errorf("an older tarball: %v\n%s", err, out)
	}

	// Away, with the resources left; and back.
	if out, err := alpha.Run(t.Context(), "mesh-host", "uninstall", "--yes"); machine.ExitCode(err) != 3 {
		t.Errorf("uninstall of what is owned: %v\n%s", err, out)
	}
	alpha.Must("mesh-host", "uninstall", "--yes", "--keep-resources")
	if out, _ := alpha.Run(t.Context(), "systemctl", "is-active", "mesh-host"); out == "active" {
		t.Error("the host runs after its uninstall")
	}
	if got := mainPID(alpha, "nox-sleeper"); got != sleeper || !holds(t, alpha, page, "hello\n") {
		t.Errorf("the resources were touched: process %s is now %q", sleeper, got)
	}
	alpha.Must(upgrade, "install")
	if got := alpha.Must("mesh-host", "owned"); !strings.Contains(got, page) || !strings.Contains(got, "sleeper") {
		t.Errorf("after the install the host owns:\n%s", got)
	}
	alpha.Must("mesh-host", "apply", "/root/web.json")
	if got := mainPID(alpha, "nox-sleeper"); got != sleeper {
		t.Errorf("the process was restarted: %s is now %s", sleeper, got)
	}

	// The last day.
	alpha.WriteFile("/root/none.json", 0o600, `{"schema": 1, "name": "web", "generation": 2, "resources": []}`)
	alpha.Must("mesh-host", "apply", "/root/none.json")
	alpha.Must("mesh-host", "uninstall", "--yes", "--purge")
	after := listing(alpha)
	kept := slices.DeleteFunc(slices.Clone(after), func(l string) bool { return strings.HasPrefix(l, "/etc/nox-mesh") })
	same(t, "the last uninstall", before, kept)
	if got := alpha.ReadFile("/etc/nox-mesh/host.toml"); got != config {
		t.Errorf("what the person wrote is now %q", got)
	}
	if got := alpha.Must("systemctl", "is-system-running"); got != "running" {
		t.Errorf("in the end the machine is %q: %s", got, alpha.Must("systemctl", "--failed", "--no-legend"))
	}
}

// running is the version that answers, "" when none does.
func running(t *testing.T, m *machine.Machine) string {
	t.Helper()
	var s struct {
		Running bool
		Version string
	}
	out, err := m.Run(t.Context(), "mesh-host", "status", "--json")
	if err != nil || json.Unmarshal([]byte(out), &s) != nil || !s.Running {
		return ""
	}
	return s.Version
}

func mainPID(m *machine.Machine, unit string) string {
	return m.Must("systemctl", "show", "-P", "MainPID", unit)
}

// listing is what lies where a host and its resources could leave something:
// path, type, mode, owner, and the size of a file or the target of a link.
func listing(m *machine.Machine) []string {
	out := m.Must("find", "/etc", "/usr", "/opt", "/srv", "/home", "/var/lib", "/var/log", "/run",
		"-ignore_readdir_race", "(", "-path", "/var/lib/systemd", "-o", "-path", "/var/log/journal", "-o",
		"-path", "/run/*", "-not", "-path", "/run/nox-mesh*", "-not", "-path", "/run/systemd", "-not", "-path", "/run/systemd/system*", ")", "-prune", "-o",
		"(", "-type", "f", "-printf", "%p %y %m %U:%G %s\\n", "-o", "-printf", "%p %y %m %U:%G %l\\n", ")")
	lines := strings.Split(out, "\n")
	slices.Sort(lines)
	return lines
}

// same compares two listings.
func same(t *testing.T, what string, before, after []string) {
	t.Helper()
	for _, l := range after {
		if !slices.Contains(before, l) {
			t.Errorf("%s: there is now: %s", what, l)
		}
	}
	for _, l := range before {
		if !slices.Contains(after, l) {
			t.Errorf("%s: there was: %s", what, l)
		}
	}
}
