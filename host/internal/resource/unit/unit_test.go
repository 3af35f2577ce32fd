package unit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func TestWithoutSystemdAUnitIsUnsupported(t *testing.T) {
	h := newHost(t, layout.Layout{Root: t.TempDir()})
	t.Cleanup(func() { must(t, h.engine.Store.Close()) })
	const why = "the root is a directory: no service manager is in charge of it"
	h.want(h.applied(a("nox-a.service", sleeper, up)), "unsupported unit:nox-a.service ("+why+")")
	steps, err := h.engine.Plan(t.Context(), store.SourceFile, []byte(`{"schema": 1, "name": "lab", "resources": [`+a("nox-a.service", sleeper, up)+`]}`))
	if err != nil || steps[0].Action != "unsupported" || !strings.HasSuffix(steps[0].Error, why) {
		t.Errorf("%+v, %v", steps, err)
	}
	if all, _ := os.ReadDir(h.kind.Layout.Root); len(all) > 0 {
		t.Errorf("it wrote %v", all)
	}
}

func TestU01AMaskIsSomebodysWord(t *testing.T) {
	h, _ := faked(t)
	file := h.kind.Layout.Path(unitDir + "nox-a.service")
	doc := a("nox-a.service", sleeper, up)
	h.applied(doc)
	mask := func() {
		t.Helper()
		must(t, errors.Join(os.Remove(file), os.Symlink("/dev/null", file)))
	}
	null, err := os.Stat(os.DevNull)
	must(t, err)
	masked := func() bool { to, _ := os.Readlink(file); return to == "/dev/null" }
	mask()
	h.calls.took()
	h.want(h.pass(), `held unit:nox-a.service (it is masked: "/etc/systemd/system/nox-a.service" is a symlink to /dev/null; "masked": false undoes that)`)
	if calls := h.calls.took(); !masked() || len(calls) > 0 {
		t.Errorf("it was touched: %q", calls)
	}
	h.want(h.applied(strings.Replace(doc, `"enabled"`, `"masked": false, "enabled"`, 1)), "applied unit:nox-a.service")
	if masked() {
		t.Error("it is masked still")
	}
	mask()
	h.want(h.applied(), "removed unit:nox-a.service (somebody masked it, and it stays masked)")
	if !masked() {
		t.Error("the mask is gone")
	}
	if now, err := os.Stat(os.DevNull); err != nil || !os.SameFile(null, now) || now.Mode() != null.Mode() {
		t.Errorf("%s was touched: %v, %v", os.DevNull, now, err)
	}
}

func TestU02ADropInOfAnotherResourceIsLeft(t *testing.T) {
	h, _ := faked(t)
	h.applied(a("nox-a.service", sleeper, up))
	const by = unitDir + "nox-a.service.d/secret.conf"
	write(t, h.kind.Layout, by, "[Service]\nEnvironment=A=b\n")
	must(t, h.engine.Store.Commit(resource.Record{Key: "file:" + by, ID: "x", Type: declaration.TypeFile, Spec: []byte(`{}`), At: time.Now()}))
	want := resource.Want{}
	doc, err := declaration.Parse([]byte(`{"schema": 1, "name": "lab", "resources": [` + a("nox-a.service", sleeper, up) + `]}`))
	must(t, err)
	want.Resource, want.Spec = doc.Resources[0], doc.Resources[0].Spec()
	prior := &resource.Record{Spec: want.Spec}
	st, err := h.kind.Check(t.Context(), want, prior)
	if d := st.Differences; err != nil || !slices.Equal(d, []string{"systemd has not read its files since they changed"}) {
		t.Errorf("%q, %v", d, err)
	}
	must(t, h.engine.Store.Forget("file:"+by))
	st, err = h.kind.Check(t.Context(), want, prior)
	if d := st.Differences; err != nil || len(d) == 0 || d[0] != "drop-in "+by+": not declared, to be kept as secret.conf.nox-saved" {
		t.Errorf("%q, %v", d, err)
	}
	must(t, h.kind.Apply(t.Context(), want, prior, st))
	if b, err := os.ReadFile(h.kind.Layout.Path(by + ".nox-saved")); err != nil || !strings.Contains(string(b), "A=b") {
		t.Errorf("%q, %v", b, err)
	}
}

func TestADropInFolderThatIsASymlinkLeadsNobody(t *testing.T) {
	h, _ := faked(t)
	must(t, os.MkdirAll(h.kind.Layout.Path("/srv/d"), 0o755))
	write(t, h.kind.Layout, unitDir+"x", "")
	must(t, os.Symlink(h.kind.Layout.Path("/srv/d"), h.kind.Layout.Path(unitDir+"nox-a.service.d")))
	got := h.applied(a("nox-a.service", sleeper, `, "drop_ins": {"a.conf": ""}`))
	if !strings.HasPrefix(got, "failed unit:nox-a.service (") || !strings.Contains(got, "is no directory") {
		t.Error(got)
	}
	if all, _ := os.ReadDir(h.kind.Layout.Path("/srv/d")); len(all) > 0 {
		t.Errorf("it wrote %v", all)
	}
}

func TestU03OneReloadBeforeAnyStart(t *testing.T) {
	h, _ := faked(t)
	docs := []string{a("nox-a.service", sleeper, up), a("nox-b.service", sleeper, up), a("nox-c.service", sleeper, up)}
	h.want(h.applied(docs...), "applied unit:nox-a.service", "applied unit:nox-b.service", "applied unit:nox-c.service")
	h.quiet()
	for i := range docs {
		docs[i] = strings.Replace(docs[i], "1000", "1001", 1)
	}
	h.applied(docs...)
	calls := h.calls.took()
	slices.Sort(calls[1:])
	if want := []string{"daemon-reload", "restart nox-a.service", "restart nox-b.service", "restart nox-c.service"}; !slices.Equal(calls, want) {
		t.Errorf("%q", calls)
	}
	h.want(h.applied(), "removed unit:nox-c.service", "removed unit:nox-b.service", "removed unit:nox-a.service")
}

// One of several that fails before the daemon-reload keeps nobody waiting.
func TestU03OneThatFailsDoesNotHoldTheOthersUp(t *testing.T) {
	h, _ := faked(t)
	d := digest.FromString("nowhere")
	start := time.Now()
	got := h.applied(a("nox-a.service", sleeper, up), fmt.Sprintf(`{"id": "b", "type": "unit", "name": "nox-b.service", "source": %q}`, d), a("nox-c.service", sleeper, up))
	h.want(got, "applied unit:nox-a.service", `failed unit:nox-b.service (cannot write unit "nox-b.service": …`, "applied unit:nox-c.service")
	if took := time.Since(start); took > patience {
		t.Errorf("it took %s", took)
	}
}

func TestU04WhatAChangeDoes(t *testing.T) {
	for policy, want := range map[string][]string{
		"none": {"daemon-reload"}, "reload": {"daemon-reload", "reload nox-a.service"}, "restart": {"daemon-reload", "restart nox-a.service"},
	} {
		h, _ := faked(t)
		on := fmt.Sprintf(`, "active": true, "on_change": %q`, policy)
		h.applied(a("nox-a.service", sleeper, on))
		h.calls.took()
		h.want(h.applied(a("nox-a.service", sleeper+"# changed\n", on)), "applied unit:nox-a.service")
		if calls := h.calls.took(); !slices.Equal(calls, want) {
			t.Errorf("%s: %q", policy, calls)
		}
		h.quiet()
	}
}

func TestAChangeIsNotForgottenWhenTheHostIsKilledBeforeTheRestart(t *testing.T) {
	h, _ := faked(t)
	h.applied(a("nox-a.service", sleeper, up))
	h.calls.took()
	h.calls.die = 2 // the restart
	h.applied(a("nox-a.service", strings.Replace(sleeper, "1000", "1001", 1), up))
	h.calls.die = 0
	h.calls.took()
	h.want(h.pass(), "applied unit:nox-a.service")
	if calls := h.calls.took(); !slices.Equal(calls, []string{"restart nox-a.service"}) {
		t.Errorf("%q", calls)
	}
	h.quiet()
	// Nothing that runs is older than the machine's boot.
	write(t, h.kind.Layout, "/var/lib/nox-mesh/unit/nox-a.service", "of another boot\n")
	h.quiet()
}

func TestU06TheResultIsKept(t *testing.T) {
	for result, want := range map[string]string{
		"timeout":    `its job ended with "timeout" (it took longer than a job may): exit-code, exited with 7`,
		"dependency": `its job ended with "dependency" (a unit that it needs did not start): exit-code, exited with 7`,
		"skipped":    `its job ended with "skipped" (it cannot do that as it is): exit-code, exited with 7`,
		"failed":     `its job ended with "failed": exit-code, exited with 7`,
		"newer":      `its job ended with "newer": exit-code, exited with 7`,
		"done":       "exit-code, exited with 7",
	} {
		h, f := faked(t)
		f.result = func(verb, string) string { return result }
		f.hook = func(_ string, s *status) { s.Active, s.Result, s.Exit = "failed", "exit-code", exitOf(1, 7) }
		h.want(h.applied(a("nox-a.service", sleeper, up)), `failed unit:nox-a.service (cannot start unit "nox-a.service": `+want+")")
	}
}

func TestU07ChangedWantedBy(t *testing.T) {
	h, _ := faked(t)
	h.applied(a("nox-a.service", sleeper, up))
	h.want(h.applied(a("nox-a.service", strings.Replace(sleeper, "multi-user", "graphical", 1), up)), "applied unit:nox-a.service")
	all, _ := filepath.Glob(h.kind.Layout.Path(unitDir + "*.wants/*"))
	if len(all) != 1 || !strings.HasSuffix(all[0], "/graphical.target.wants/nox-a.service") {
		t.Errorf("links: %q", all)
	}
	h.quiet()
}

func TestU10TheHostsOwnByAnotherName(t *testing.T) {
	h, f := faked(t)
	l := h.kind.Layout
	write(t, l, unitDir+layout.HostUnit, sleeper)
	write(t, l, "/usr/lib/systemd/system/nox-i@.service", sleeper)
	for name, target := range map[string]string{
		"nox-one.service": layout.HostUnit, "nox-two.service": "nox-one.service", "nox-three.service": "/etc/systemd/system/nox-one.service",
		"nox-four@.service": "../system/" + layout.HostUnit,
	} {
		must(t, os.Symlink(target, l.Path(unitDir+name)))
	}
	must(t, os.Link(l.Path(unitDir+layout.HostUnit), l.Path(unitDir+"nox-five.service")))
	for _, name := range []string{"nox-one.service", "nox-two.service", "nox-three.service", "nox-four@.service", "nox-four@x.service", "nox-five.service"} {
		err := h.accept(a(name, "", `, "active": false`))
		if err == nil || !strings.Contains(err.Error(), `resources[0]: name: "/etc/systemd/system/nox-`) || !strings.Contains(err.Error(), layout.HostUnit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	evil := "[Unit]\nConflicts=" + layout.HostUnit + "\n"
	d := digest.FromString(evil)
	h.blobs[d] = evil
	doc := fmt.Sprintf(`{"id": "e", "type": "unit", "name": "nox-e.service", "source": %q}`, d)
	if err := h.accept(doc); err == nil || !strings.Contains(err.Error(), `resources[0]: source: its content names "mesh-host.service"`) {
		t.Errorf("%v", err)
	}
	// The content came later than the declaration.
	delete(h.blobs, d)
	must(t, h.accept(doc))
	h.blobs[d] = evil
	h.want(h.pass(), `failed unit:nox-e.service (cannot write unit "nox-e.service": its content names "mesh-host.service"…`)
	// Only systemd knows the name.
	f.hook = func(_ string, s *status) { s.Names = append(s.Names, layout.HostUnit) }
	h.want(h.applied(a("nox-i@x.service", "", `, "active": false`)), `failed unit:nox-i@x.service (cannot check unit "nox-i@x.service": it is another name of "mesh-host.service"…`)
	if calls := h.calls.took(); len(calls) > 0 {
		t.Errorf("%q", calls)
	}
}

func TestWhatSomebodyMadeOfAFileIsKeptWhenItGoes(t *testing.T) {
	h, _ := faked(t)
	h.applied(a("nox-a.service", sleeper, up+`, "drop_ins": {"a.conf": ""}`))
	write(t, h.kind.Layout, unitDir+"nox-a.service", "mine")
	write(t, h.kind.Layout, unitDir+"nox-a.service.d/z.conf", "mine too")
	h.want(h.applied(), `removed unit:nox-a.service (somebody changed its file: what it was is in "/etc/systemd/system/nox-a.service.nox-saved")`)
	for file, want := range map[string]string{"nox-a.service.nox-saved": "mine", "nox-a.service.d/z.conf": "mine too"} {
		if b, _ := os.ReadFile(h.kind.Layout.Path(unitDir + file)); string(b) != want {
			t.Errorf("%s: %q", file, b)
		}
	}
}

func TestSomebodysUnitWithWordsOfOurs(t *testing.T) {
	h, _ := faked(t)
	// No daemon-reload of ours answers for what is another's.
	write(t, h.kind.Layout, "/usr/lib/systemd/system/nox-v.service", sleeper)
	h.want(h.applied(a("nox-v.service", "", `, "active": true`)), "applied unit:nox-v.service")
	write(t, h.kind.Layout, "/usr/lib/systemd/system/nox-v.service", sleeper+"# an upgrade\n")
	h.quiet()
	// But what is started anew is started as its files are now.
	doc, err := declaration.Parse([]byte(`{"schema": 1, "name": "lab", "resources": [` + a("nox-v.service", "", `, "active": true`) + `]}`))
	must(t, err)
	must(t, h.kind.Apply(t.Context(), resource.Want{Resource: doc.Resources[0], Spec: doc.Resources[0].Spec(), Restart: true},
		&resource.Record{Spec: doc.Resources[0].Spec()}, resource.State{Same: true}))
	if calls := h.calls.took(); !slices.Equal(calls, []string{"daemon-reload", "restart nox-v.service"}) {
		t.Errorf("%q", calls)
	}
	write(t, h.kind.Layout, "/usr/lib/systemd/system/nox-v.service", sleeper)
	// A file of that name that came after the unit became ours is kept.
	write(t, h.kind.Layout, unitDir+"nox-v.service.d/a.conf", "somebody's")
	h.want(h.applied(a("nox-v.service", "", `, "active": true, "drop_ins": {"a.conf": "[Service]\\n"}`)), "applied unit:nox-v.service")
	if b, _ := os.ReadFile(h.kind.Layout.Path(unitDir + "nox-v.service.d/a.conf.nox-saved")); string(b) != "somebody's" {
		t.Errorf("%q", b)
	}
}

func TestAPlanShowsWhatAUnitWillSay(t *testing.T) {
	h, _ := faked(t)
	h.applied(a("nox-a.service", "[Service]\nExecStart=/one\n", ""))
	change := a("nox-a.service", "[Service]\nExecStart=/two\n", "")
	plan := func() string {
		steps, err := h.engine.Plan(t.Context(), store.SourceFile, []byte(`{"schema": 1, "name": "lab", "resources": [`+change+`]}`))
		must(t, err)
		return steps[0].Diff
	}
	if got := plan(); !strings.Contains(got, "\n-ExecStart=/one\n+ExecStart=/two\n") {
		t.Errorf("%q", got)
	}
	must(t, os.Chmod(h.kind.Layout.Path(unitDir+"nox-a.service"), 0o600))
	if got := plan(); got != "" {
		t.Errorf("it shows %q", got)
	}
}
