//go:build machine

package unit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func machine(t *testing.T) *host {
	skip := t.Skip
	if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
		skip = t.Fatal
	}
	l := layout.Layout{}
	if why := without(l); why != "" {
		skip(why)
	}
	if _, err := os.Lstat(filepath.Join(l.UnitDir(), layout.HostUnit)); err == nil {
		skip("a host is installed here")
	}
	h := newHost(t, l)
	t.Cleanup(func() {
		h.calls.die = 0
		h.applied()
		must(t, errors.Join(h.engine.Store.Close(), os.RemoveAll(filepath.Join(l.State(), "unit"))))
		left, _ := filepath.Glob(unitDir + "nox-*")
		for _, file := range left {
			t.Errorf("left behind: %s", file)
			must(t, os.RemoveAll(file))
		}
	})
	return h
}

func (h *host) sh(script string) string {
	h.t.Helper()
	out, err := exec.Command("sh", "-ec", script).CombinedOutput()
	if err != nil {
		h.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (h *host) prop(unit, name string) string {
	h.t.Helper()
	return h.sh("systemctl show --value -p " + name + " " + unit)
}

func (h *host) put(file, text string) {
	h.t.Helper()
	must(h.t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)))
	h.t.Cleanup(func() { must(h.t, os.Remove(file)) })
}

func TestMachineU03OneReloadBeforeAnyStart(t *testing.T) {
	h := machine(t)
	docs := []string{a("nox-a.service", sleeper, up), a("nox-b.service", sleeper, up), a("nox-c.service", sleeper, up)}
	h.want(h.applied(docs...), "applied unit:nox-a.service", "applied unit:nox-b.service", "applied unit:nox-c.service")
	h.quiet()
	for i := range docs {
		docs[i] = strings.Replace(docs[i], "1000", "1001", 1)
	}
	h.want(h.applied(docs...), "applied unit:nox-a.service", "applied unit:nox-b.service", "applied unit:nox-c.service")
	calls := h.calls.took()
	slices.Sort(calls[1:])
	if want := []string{"daemon-reload", "restart nox-a.service", "restart nox-b.service", "restart nox-c.service"}; !slices.Equal(calls, want) {
		t.Errorf("%q", calls)
	}
	if got := h.sh("ps ax -o args | grep -c '^/bin/sleep 1001'"); got != "3" {
		t.Errorf("%s run as declared now", got)
	}
	h.quiet()
	h.want(h.applied(), "removed unit:nox-c.service", "removed unit:nox-b.service", "removed unit:nox-a.service")
	if got := h.sh("systemctl list-units --all --plain --no-legend 'nox-*'; ls /etc/systemd/system /etc/systemd/system/*.wants | grep nox- || true"); got != "" {
		t.Errorf("left: %s", got)
	}
}

func TestMachineU01AMaskIsHeld(t *testing.T) {
	h := machine(t)
	doc := a("nox-a.service", sleeper, up)
	h.applied(doc)
	const file = unitDir + "nox-a.service"
	h.sh("ln -sf /dev/null " + file + " && systemctl daemon-reload")
	const why = `held unit:nox-a.service (it is masked: "/etc/systemd/system/nox-a.service" is a symlink to /dev/null; "masked": false undoes that)`
	h.want(h.pass(), why)
	if to, err := os.Readlink(file); to != "/dev/null" {
		t.Errorf("%q, %v", to, err)
	}
	h.want(h.applied(strings.Replace(doc, `"enabled"`, `"masked": false, "enabled"`, 1)), "applied unit:nox-a.service")
	if got := h.prop("nox-a.service", "ActiveState"); got != "active" {
		t.Error(got)
	}
	h.quiet()
}

func TestMachineMaskedAndGivenBack(t *testing.T) {
	h := machine(t)
	h.put("/usr/lib/systemd/system/nox-v.service", sleeper)
	h.sh("systemctl daemon-reload; systemctl start nox-v")
	h.want(h.applied(a("nox-v.service", "", `, "masked": true, "active": false`)), "applied unit:nox-v.service")
	if got := h.prop("nox-v", "LoadState") + h.prop("nox-v", "ActiveState"); got != "maskedinactive" {
		t.Error(got)
	}
	h.quiet()
	h.want(h.applied(), "removed unit:nox-v.service")
	if got := h.prop("nox-v", "LoadState") + h.prop("nox-v", "ActiveState") + h.prop("nox-v", "UnitFileState"); got != "loadedactivedisabled" {
		t.Error(got)
	}
	h.sh("systemctl stop nox-v; systemctl mask --runtime nox-v")
	h.want(h.applied(a("nox-v.service", "", `, "masked": false, "active": true`)), "applied unit:nox-v.service")
	h.quiet()
	h.want(h.applied(), "released unit:nox-v.service…")
	if got := h.prop("nox-v", "LoadState") + h.prop("nox-v", "ActiveState"); got != "maskedinactive" {
		t.Error(got)
	}
	h.sh("systemctl unmask --runtime nox-v")
}

func TestMachineU02ADropInByHandIsDrift(t *testing.T) {
	h := machine(t)
	h.applied(a("nox-a.service", sleeper, up))
	const by = unitDir + "nox-a.service.d/override.conf"
	h.sh("mkdir -p " + filepath.Dir(by) + "; printf '[Service]\\nExecStart=\\nExecStart=/bin/sleep 6666\\n' >" + by + "; systemctl daemon-reload; systemctl restart nox-a")
	h.want(h.pass(), "repaired unit:nox-a.service (drifted: drop-in "+by+": not declared, to be kept as override.conf.nox-saved)")
	if got := h.sh("tr '\\0' ' ' </proc/" + h.prop("nox-a", "MainPID") + "/cmdline"); got != "/bin/sleep 1000" {
		t.Errorf("it runs %q", got)
	}
	if got := h.sh("grep -c 6666 " + by + ".nox-saved"); got != "1" {
		t.Errorf("kept: %s", got)
	}
	h.quiet()
	h.sh("rm " + by + ".nox-saved")

	// A drop-in of another resource belongs there.
	write(t, layout.Layout{}, by, "[Service]\nNice=5\n")
	must(t, h.engine.Store.Commit(resource.Record{Key: "file:" + by, ID: "x", Type: declaration.TypeFile, Spec: []byte(`{}`), At: time.Now()}))
	h.want(h.pass(), "failed file:"+by+"…", "repaired unit:nox-a.service (drifted: systemd has not read its files since they changed)")
	must(t, h.engine.Store.Forget("file:"+by))
	h.sh("rm " + by)
	h.pass()
	// What is set for good with systemctl is the same as a file by hand.
	h.sh("systemctl set-property nox-a.service CPUWeight=50")
	h.want(h.pass(), "repaired unit:nox-a.service (drifted: drop-in /etc/systemd/system.control/nox-a.service.d/50-CPUWeight.conf: not declared…")
	if got := h.prop("nox-a", "CPUWeight"); got != "[not set]" {
		t.Error(got)
	}
	h.quiet()
	h.sh("rm -r /etc/systemd/system.control/nox-a.service.d")
	h.want(h.applied(), "removed unit:nox-a.service")
	h.sh("rmdir " + filepath.Dir(by))
}

func TestMachineU04WhatAChangeDoes(t *testing.T) {
	for policy, c := range map[string]struct{ same, told bool }{
		"none": {true, false}, "reload": {true, true}, "restart": {false, false},
	} {
		t.Run(policy, func(t *testing.T) {
			h := machine(t)
			told := filepath.Join(t.TempDir(), "told")
			text := "[Service]\nExecStart=/bin/sleep 1000\nExecReload=/usr/bin/touch " + told + "\n"
			on := fmt.Sprintf(`, "active": true, "on_change": %q`, policy)
			h.applied(a("nox-a.service", text, on))
			pid := h.prop("nox-a", "MainPID")
			h.want(h.applied(a("nox-a.service", text+"# changed\n", on)), "applied unit:nox-a.service")
			if same := h.prop("nox-a", "MainPID") == pid; same != c.same {
				t.Errorf("the same process: %v", same)
			}
			if _, err := os.Stat(told); (err == nil) != c.told {
				t.Errorf("reloaded: %v", err)
			}
			h.quiet()
		})
	}
}

func TestMachineU05SystemdGoesAwayInTheMiddle(t *testing.T) {
	h := machine(t)
	text := "[Service]\nExecStartPre=/bin/systemctl daemon-reexec\nExecStartPre=/bin/systemctl try-restart dbus.service\nExecStart=/bin/sleep 1000\n"
	h.want(h.applied(a("nox-a.service", text, `, "active": true`)), "applied unit:nox-a.service")
	h.quiet()
	h.sh("systemctl daemon-reexec") // between two passes
	h.quiet()
}

func TestMachineU07ChangedWantedBy(t *testing.T) {
	h := machine(t)
	h.applied(a("nox-a.service", sleeper, up))
	text := strings.Replace(sleeper, "multi-user.target", "graphical.target\nAlias=nox-other.service", 1)
	h.want(h.applied(a("nox-a.service", text, up)), "applied unit:nox-a.service")
	links := func() string {
		return h.sh("cd /etc/systemd/system; find -lname '*nox-a.service' | sort | tr '\\n' ' '")
	}
	if got := links(); got != "./graphical.target.wants/nox-a.service ./nox-other.service" {
		t.Errorf("links: %s", got)
	}
	h.quiet()
	h.sh("systemctl disable nox-a 2>&1; ln -s ../nox-a.service /etc/systemd/system/multi-user.target.wants/")
	h.want(h.pass(), "repaired unit:nox-a.service (drifted: not enabled: no link graphical.target.wants/nox-a.service, not enabled: no link nox-other.service, "+
		"enabled by a link that its [Install] does not say: multi-user.target.wants/nox-a.service)")
	if got := links(); got != "./graphical.target.wants/nox-a.service ./nox-other.service" {
		t.Errorf("links: %s", got)
	}
	h.want(h.applied(a("nox-a.service", text, `, "enabled": false`)), "applied unit:nox-a.service")
	if got := links(); got != "" {
		t.Errorf("links: %s", got)
	}
	h.quiet()
}

func TestMachineU09StoppedByAPerson(t *testing.T) {
	h := machine(t)
	h.applied(a("nox-a.service", sleeper, up), a("nox-t.timer", "[Timer]\nOnCalendar=yearly\n[Install]\nWantedBy=timers.target\n", up),
		a("nox-t.service", "[Service]\nType=oneshot\nExecStart=/bin/true\n", ""))
	h.sh("systemctl stop nox-a nox-t.timer")
	h.want(h.pass(), "repaired unit:nox-a.service (drifted: somebody had stopped it at …", "repaired unit:nox-t.timer (drifted: somebody had stopped it at …", "unchanged unit:nox-t.service")
	h.sh("kill -9 $(systemctl show --value -p MainPID nox-a); until systemctl is-failed nox-a; do :; done")
	h.want(h.pass(), "repaired unit:nox-a.service (drifted: failed: signal, killed by SIGKILL)", "unchanged unit:nox-t.timer", "unchanged unit:nox-t.service")
	h.sh("kill $(systemctl show --value -p MainPID nox-a); while systemctl is-active nox-a; do :; done")
	h.want(h.pass(), "repaired unit:nox-a.service (drifted: it ended by itself at …", "unchanged unit:nox-t.timer", "unchanged unit:nox-t.service")
	h.quiet()
}

func TestMachineU10TheHostsOwnByAnotherName(t *testing.T) {
	h := machine(t)
	h.put(unitDir+layout.HostUnit, sleeper)
	must(t, os.Symlink(layout.HostUnit, unitDir+"nox-alias.service"))
	t.Cleanup(func() { must(t, os.Remove(unitDir+"nox-alias.service")) })
	h.sh("systemctl daemon-reload")
	evil := "[Unit]\nConflicts=" + layout.HostUnit + "\n"
	d := digest.FromString(evil)
	h.blobs[d] = evil
	for doc, want := range map[string]string{
		a("nox-alias.service", "", `, "active": false`):                                               `name: "/etc/systemd/system/nox-alias.service" leads to "mesh-host.service"`,
		fmt.Sprintf(`{"id": "e", "type": "unit", "name": "nox-e.service", "source": %q}`, d.String()): `source: its content names "mesh-host.service"`,
	} {
		if err := h.accept(doc); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", doc, err)
		}
	}
	// It came to be an alias after the declaration was accepted, and only
	// systemd knows.
	must(t, h.accept(a("nox-late.service", "", `, "active": false`)))
	must(t, os.Symlink(layout.HostUnit, unitDir+"nox-late.service"))
	h.sh("systemctl daemon-reload; systemctl start nox-late.service; rm " + unitDir + "nox-late.service")
	h.want(h.pass(), `failed unit:nox-late.service (cannot check unit "nox-late.service": it is another name of "mesh-host.service"…`)
	if got := h.prop(layout.HostUnit, "ActiveState"); got != "active" {
		t.Errorf("the host's unit is %s", got)
	}
	h.sh("systemctl stop " + layout.HostUnit)
}

func TestMachineASomebodysUnitGoesBackToHowItWasFound(t *testing.T) {
	h := machine(t)
	h.put("/usr/lib/systemd/system/nox-v.service", sleeper)
	h.put("/usr/lib/systemd/system/nox-i@.service", strings.Replace(sleeper, "1000", "%i", 1))
	h.sh("systemctl daemon-reload")
	drop := `, "drop_ins": {"10-oom.conf": "[Service]\nOOMScoreAdjust=77\n"}`
	h.want(h.applied(a("nox-v.service", "", up+drop), a("nox-i@77.service", "", up)), "applied unit:nox-v.service", "applied unit:nox-i@77.service")
	if got := h.sh("cat /proc/" + h.prop("nox-v", "MainPID") + "/oom_score_adj"); got != "77" {
		t.Errorf("oom_score_adj %s", got)
	}
	h.quiet()
	h.want(h.applied(a("nox-v.service", "", up), a("nox-i@77.service", "", up)), "applied unit:nox-v.service", "unchanged unit:nox-i@77.service")
	if got := h.sh("cat /proc/" + h.prop("nox-v", "MainPID") + "/oom_score_adj"); got == "77" {
		t.Errorf("oom_score_adj %s", got)
	}
	h.quiet()
	h.want(h.applied(), "released unit:nox-i@77.service…", "released unit:nox-v.service…")
	for _, u := range []string{"nox-v", "nox-i@77"} {
		if got := h.prop(u, "ActiveState") + h.prop(u, "UnitFileState"); got != "inactivedisabled" {
			t.Errorf("%s is %s", u, got)
		}
	}
	// One that was there as declared.
	h.sh("systemctl enable --now nox-v 2>&1")
	pid := h.prop("nox-v", "MainPID")
	h.want(h.applied(a("nox-v.service", "", up)), "adopted unit:nox-v.service")
	h.want(h.applied(), "released unit:nox-v.service…")
	if got := h.prop("nox-v", "MainPID"); got != pid || h.prop("nox-v", "UnitFileState") != "enabled" {
		t.Error("it was touched")
	}
	// Its text is somebody's.
	got := h.applied(a("nox-v.service", sleeper+"# ours\n", up))
	if !strings.HasPrefix(got, "failed unit:nox-v.service (exists and is not ours (its file: missing") {
		t.Error(got)
	}
	h.want(h.applied(a("nox-v.service", strings.Replace(sleeper, "1000", "1234", 1), up+`, "take_over": true`)), "applied unit:nox-v.service")
	if got := h.sh("tr '\\0' ' ' </proc/" + h.prop("nox-v", "MainPID") + "/cmdline"); got != "/bin/sleep 1234" {
		t.Errorf("it runs %q", got)
	}
	h.quiet()
	h.want(h.applied(), "removed unit:nox-v.service")
	if got := h.sh("tr '\\0' ' ' </proc/" + h.prop("nox-v", "MainPID") + "/cmdline"); got != "/bin/sleep 1000" || h.prop("nox-v", "UnitFileState") != "enabled" {
		t.Errorf("it runs %q", got)
	}
	h.sh("systemctl disable --now nox-v 2>&1")
}

func TestMachineH01KilledAtEveryCallConverges(t *testing.T) {
	one, two := a("nox-a.service", sleeper, up+`, "drop_ins": {"a.conf": ""}`),
		a("nox-a.service", strings.NewReplacer("1000", "1001", "multi-user", "graphical").Replace(sleeper), up)
	for name, c := range map[string]struct {
		from, to []string
	}{"create": {nil, []string{one}}, "change": {[]string{one}, []string{two}}, "remove": {[]string{two}, nil}} {
		for n, more := 1, true; more; n++ {
			t.Run(fmt.Sprintf("%s-%d", name, n), func(t *testing.T) {
				h := machine(t)
				h.applied(c.from...)
				h.calls.took()
				h.calls.die = n
				h.applied(c.to...)
				more = len(h.calls.took()) >= n
				h.calls.die = 0
				h.pass()
				if got := h.pass(); c.to != nil && got != "unchanged unit:nox-a.service" || c.to == nil && got != "" {
					t.Errorf("%q", got)
				}
				got := h.prop("nox-a", "ActiveState") + h.sh(`cd /etc/systemd/system; ls -d *.wants/nox-a.service nox-a* 2>/dev/null | tr '\n' ' '
						ps ax -o args | grep '^/bin/sleep 100' || true`)
				want := map[string]string{
					"create": "activemulti-user.target.wants/nox-a.service nox-a.service nox-a.service.d /bin/sleep 1000",
					"change": "activegraphical.target.wants/nox-a.service nox-a.service /bin/sleep 1001",
					"remove": "inactive",
				}[name]
				if got != want {
					t.Errorf("there is %q, want %q", got, want)
				}
			})
		}
	}
}
