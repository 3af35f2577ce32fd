//go:build machine

package unit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMachineU06WhatBecameOfAJob(t *testing.T) {
	once := func(more string) string { return "[Service]\nType=oneshot\nRemainAfterExit=yes\n" + more }
	cases := map[string]struct {
		text string
		want string
	}{
		"failed":      {once("ExecStart=/bin/false\n"), `its job ended with "failed": exit-code, exited with 1`},
		"no program":  {once("ExecStart=/nowhere\n"), `its job ended with "failed": exit-code, cannot be executed: its program (203/EXEC)`},
		"slow start":  {"[Service]\nType=notify\nTimeoutStartSec=1\nExecStart=/bin/sleep 100\n", `its job ended with "failed": timeout, killed by SIGTERM`},
		"job timeout": {"[Unit]\nJobRunningTimeoutSec=1\n" + once("ExecStart=/bin/sleep 100\n"), `its job ended with "timeout" (it took longer than a job may): `},
		"dependency":  {"[Unit]\nRequires=nox-bad.service\nAfter=nox-bad.service\n" + once("ExecStart=/bin/true\n"), `its job ended with "dependency" (a unit that it needs did not start): `},
		"assertion":   {"[Unit]\nAssertPathExists=/nowhere\n" + once("ExecStart=/bin/true\n"), `its job ended with "assert" (an assertion of it is not met): `},
		"condition":   {"[Unit]\nConditionPathExists=/nowhere\n" + once("ExecStart=/bin/true\n"), "a condition of it is not met: ConditionPathExists=/nowhere"},
		"once":        {"[Service]\nType=oneshot\nExecStart=/bin/true\n", "it ends when its work is done (Type=oneshot), so it is never active"},
		"bad setting": {"[Service]\nExecStart=\n", "systemd cannot load it: bad-setting, Unit UNIT has a bad unit file setting."},
		"for ever":    {once("ExecStart=/bin/sleep 1000\n"), "its job has not ended after 3s: it is activating (start); systemd goes on with it"},
		"another job": {once("ExecStart=/bin/systemctl stop UNIT\n"), `its job ended with "canceled" (another job took its place): `},
	}
	h := machine(t)
	h.kind.jobTime = 3 * time.Second
	h.put(unitDir+"nox-bad.service", once("ExecStart=/bin/false\n"))
	var docs []string
	names := slices.Sorted(maps.Keys(cases))
	for _, name := range names {
		unit := "nox-" + strings.ReplaceAll(name, " ", "-") + ".service"
		docs = append(docs, a(unit, strings.ReplaceAll(cases[name].text, "UNIT", unit), `, "active": true`))
	}
	got := strings.Split(h.applied(docs...), "\n")
	for i, name := range names {
		unit := "nox-" + strings.ReplaceAll(name, " ", "-") + ".service"
		want := fmt.Sprintf("failed unit:%[1]s (cannot start unit %[1]q: %[2]s", unit, strings.ReplaceAll(cases[name].want, "UNIT", unit))
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("got  %s\nwant %s", got[i], want)
		}
	}
	h.sh("systemctl reset-failed nox-bad.service")
	h.applied()
	if got := h.sh("systemctl list-units --failed --plain --no-legend 'nox-*'"); got != "" {
		t.Errorf("systemd still tells of what is gone:\n%s", got)
	}
}

func TestMachineAUnitThatKeepsFailingIsNoDrift(t *testing.T) {
	h := machine(t)
	h.applied(a("nox-a.service", "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/false\nRestart=always\nRestartSec=1000\n", `, "active": true`))
	h.sh("until [ $(systemctl show --value -p SubState nox-a) = auto-restart ]; do :; done")
	const why = "failed unit:nox-a.service (exit-code, exited with 1; systemd starts it again and again)"
	h.want(h.pass(), why)
	h.calls.took()
	h.want(h.pass(), why)
	if calls := h.calls.took(); len(calls) > 0 {
		t.Errorf("it was touched: %q", calls)
	}
	if _, err := h.engine.Reconcile(t.Context(), "a person", true); err != nil {
		t.Fatal(err)
	}
	if calls := h.calls.took(); !slices.Equal(calls, []string{"restart nox-a.service"}) {
		t.Errorf("a person asked for another try: %q", calls)
	}
}
