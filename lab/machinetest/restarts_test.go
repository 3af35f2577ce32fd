//go:build machine

package machinetest

import (
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// TestTheServiceOutlivesWhatItTalksTo: the journal, the bus and systemd itself are
// started anew under a host that works on.
func TestTheServiceOutlivesWhatItTalksTo(t *testing.T) {
	t.Parallel()
	m := hosted(t, machine.Start(t), "alpha")
	m.WriteFile("/root/unit.json", 0o600, `{"schema": 1, "name": "web", "generation": 2, "resources": [
		{"id": "page", "type": "file", "path": "/srv/page", "content": "hello\n"},
		{"id": "beat", "type": "unit", "name": "beat.service", "active": true,
		 "content": "[Service]\nExecStart=/bin/sleep infinity\n"}]}`)
	m.Must("mesh-host", "apply", "/root/unit.json")
	pid := mainPID(m, "mesh-host")
	for _, restart := range []string{"systemctl restart systemd-journald", "systemctl restart dbus", "systemctl daemon-reexec"} {
		m.Must(strings.Fields(restart)...)
		m.Must("rm", "/srv/page")
		m.Must("systemctl", "stop", "beat")
		m.Must("mesh-host", "reconcile")
		if !holds(t, m, "/srv/page", "hello") || m.Must("systemctl", "is-active", "beat") != "active" {
			t.Errorf("after %q the drift is not undone", restart)
		}
		if got := mainPID(m, "mesh-host"); got != pid {
			t.Errorf("after %q the host is process %s, not %s", restart, got, pid)
		}
		await(t, "the journal has its word", func() bool {
			return strings.Count(m.Must("journalctl", "-u", "mesh-host", "-o", "cat", "--no-pager"), "outcome=repaired") >= 2
		})
		m.Must("journalctl", "--rotate", "--vacuum-time=1s")
	}
}
