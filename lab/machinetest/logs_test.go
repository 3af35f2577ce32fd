//go:build machine

package machinetest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// TestWhatIsSeenOfAHostUnderSystemd: what a process says is in the journal, and so is
// what the host says, with its priorities; figures have the watchdog.
func TestWhatIsSeenOfAHostUnderSystemd(t *testing.T) {
	tarball := artefact(t, "nox-mesh-host-*.tar.gz")
	m := machine.Start(t).Boot("alpha", machine.Offline)
	m.Put("/root/host.tar.gz", 0o644, tarball)
	m.Must("tar", "-C", "/root", "-xzf", "/root/host.tar.gz")
	m.Must("/root/nox-mesh-host-"+firstnode.Version+"/mesh-host", "install")
	m.WriteFile("/root/d.json", 0o600, `{"schema": 1, "name": "site", "resources": [
		{"id": "program", "type": "file", "path": "/usr/local/bin/talk", "mode": "0755", "content":
		 "#!/bin/sh\necho up\nprintf '\\033[31m\\377red\\n'\nhead -c 10000000 /dev/zero | tr '\\0' x; echo\necho down >&2\nmkfifo /root/say 2>/dev/null\nexec 3<>/root/say\nwhile read -r line <&3; do [ \"$line\" != die ] || exit 3; echo \"$line\"; done\n"},
		{"id": "talk", "type": "process", "name": "talk", "command": ["/usr/local/bin/talk"], "after": ["program"]}]}`)
	m.Must("mesh-host", "apply", "/root/d.json")
	logs := func(args ...string) string {
		return m.Must(append([]string{"mesh-host", "logs", "talk"}, args...)...)
	}
	await(t, "the process says that it is up", func() bool { return strings.HasSuffix(logs("-n", "1"), "down") })

	all := logs("--lines", "0")
	if !strings.HasPrefix(all, "up\n\x1b[31m\xffred\nxxx") || strings.Count(all, "x") != 10_000_000 || strings.Contains(all, "Started") {
		t.Errorf("%d bytes: %.60q … %q, %d times x", len(all), all, all[len(all)-20:], strings.Count(all, "x"))
	}
	var line struct {
		Time time.Time
		Text string
		Cut  bool
	}
	if err := json.Unmarshal([]byte(logs("-n", "1", "--json")), &line); err != nil || line.Text != "down" || time.Since(line.Time).Abs() > time.Hour {
		t.Errorf("%+v, %v", line, err)
	}
	// Later than what was said so far, and no later than what comes.
	since := line.Time.Add(time.Microsecond).Format(time.RFC3339Nano)
	if got := logs("--since", since); got != "" {
		t.Errorf("since then it said %q", got)
	}
	m.Must("systemd-run", "--quiet", "--unit=follow", "-p", "StandardOutput=file:/root/followed", "/usr/local/bin/mesh-host", "logs", "talk", "-f", "--since", since)
	say := func(line string) { m.Must("sh", "-c", "echo "+line+" > /root/say") }
	say("one")
	say("die")
	await(t, "it is followed over a restart", func() bool {
		got := m.ReadFile("/root/followed")
		return strings.HasPrefix(got, "one\n") && strings.Contains(got, "exited with 3") && strings.HasSuffix(strings.TrimSpace(got), "down")
	})
	// Restarted, it has emptied its pipe: what is said now is heard by the second.
	say("two")
	await(t, "it is followed still", func() bool { return strings.HasSuffix(strings.TrimSpace(m.ReadFile("/root/followed")), "two") })
	if got := logs("--since", since); !strings.HasPrefix(got, "one\n") || !strings.HasSuffix(got, "two") {
		t.Errorf("since then it said %.100q", got)
	}
	m.Must("systemctl", "stop", "follow")
	if got, err := m.Run(t.Context(), "sh", "-c", "pgrep -a journalctl; systemctl is-failed follow"); strings.Contains(got, "journalctl") || strings.Contains(got, "failed") {
		t.Errorf("left of who followed: %q, %v", got, err)
	}

	// What fails is an error in the journal, and no <3> is left of it.
	m.WriteFile("/root/e.json", 0o600, `{"schema": 1, "name": "site", "resources": [{"id": "p", "type": "file", "path": "/srv", "content": ""}]}`)
	_, _ = m.Run(t.Context(), "mesh-host", "apply", "/root/e.json")
	if got := m.Must("journalctl", "-u", "mesh-host", "-p", "err", "-o", "cat", "--no-pager"); !strings.HasPrefix(got, "level=ERROR msg=resource resource=file:/srv") {
		t.Errorf("the errors of the host are %q", got)
	}
	if got := m.Must("journalctl", "-u", "mesh-host", "-p", "info..info", "-o", "cat", "--no-pager"); !strings.Contains(got, `msg="mesh-host runs"`) || strings.Contains(got, "<6>") {
		t.Errorf("what the host says is %q", got)
	}

	metrics := ""
	await(t, "the watchdog is fed", func() bool {
		metrics = m.Must("mesh-host", "metrics")
		return strings.Contains(metrics, "\nmesh_host_watchdog_fed_timestamp_seconds ")
	})
	for _, want := range []string{"\nmesh_host_up 1\n", "\nmesh_host_watchdog_interval_seconds 10\n", "\nmesh_host_resources{outcome=\"failed\"} 1\n"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("there is no %q in\n%s", strings.TrimSpace(want), metrics)
		}
	}
	if got := m.Must("mesh-host", "status"); !strings.Contains(got, "failed  file:/srv, ") {
		t.Errorf("%s", got)
	} else {
		t.Log("\n" + got)
	}
}
