package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/link/client"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func TestH08StatusSaysForHowLongAResourceHangs(t *testing.T) {
	for seconds, want := range map[int64]string{
		3: "with container:web for 3 s", 5*60 + 10: "with container:web for 5 min", 3 * 60 * 60: "with container:web for 3 h",
	} {
		// The clock was set since: it says 1970.
		st := service.Status{State: service.StateHosted, Running: true, Busy: &apply.Busy{Key: "container:web", Since: time.Unix(0, 0), Seconds: seconds}}
		var out bytes.Buffer
		p := &program{std: cli.Stdio{Out: &out}}
		if err := p.print(st, func() error { return p.printStatus(st) }); err != nil {
			t.Fatal(err)
		}
		found := ""
		for line := range strings.Lines(out.String()) {
			if what, ok := strings.CutPrefix(line, "busy "); ok {
				found = strings.TrimSpace(what)
			}
		}
		if found != want {
			t.Errorf("%q, want %q in\n%s", found, want, out.String())
		}
		out.Reset()
		p.json = true
		if err := p.print(st, nil); err != nil {
			t.Fatal(err)
		}
		var program struct {
			Busy struct {
				Key     string
				Seconds int64
			}
		}
		if err := json.Unmarshal(out.Bytes(), &program); err != nil || program.Busy.Key != "container:web" || program.Busy.Seconds != seconds {
			t.Errorf("%+v, %v:\n%s", program, err, out.String())
		}
	}
}

// seen is what a person sees of a status.
func seen(t *testing.T, p *program, st service.Status) string {
	t.Helper()
	var out bytes.Buffer
	p.std.Out, p.root = &out, "/m"
	if err := p.printStatus(st); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestStatusInEachState(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d - 100*time.Millisecond) }
	node := func(st service.Status) service.Status {
		st.Mesh, st.Node, st.NodeID = "home", "alpha", "a1b2"
		return st
	}
	runs := service.Status{
		State: service.StateHosted, Running: true, Since: ago(72 * time.Hour), Version: "1.2.0", Owned: 3,
		Declaration: &store.Wanted{Name: "site", Source: store.SourceFile, Generation: 2, At: ago(3 * time.Hour)},
		Last:        &link.Report{Trigger: "start+timer", Started: ago(4*time.Minute + 12*time.Millisecond), Finished: ago(4 * time.Minute)},
		Content:     service.Content{Blobs: 2, Bytes: 3 << 20},
	}
	linked := func(l client.State) service.Status {
		st := node(runs)
		st.State, st.Link = service.StateDisconnected, &l
		if l.Connected {
			st.State = service.StateEnrolled
		}
		return st
	}
	failing, stopped := runs, node(runs)
	failing.Off = []service.Off{
		{Key: "process:web", There: "failed", Since: ago(3 * time.Hour), Times: 18, Differences: []string{"exited with 1", "halted"}},
		{Key: "file:/etc/motd\x1b[2J", There: "drifted", Differences: []string{"content"}},
		{Key: "file:/srv/b", There: "skipped", Since: now.Add(time.Hour), Times: 1},
		{Key: "package:htop", There: "held", Since: ago(50 * time.Second)},
	}
	failing.Warnings = []string{"the state of this host cannot be written\nand nothing is changed"}
	stopped.State, stopped.Running, stopped.Since = service.StateDisconnected, false, time.Time{}
	long := runs
	last := *runs.Last
	last.Started = last.Finished.Add(-150 * time.Second)
	long.Last, long.Busy = &last, &apply.Busy{Key: "container:db", Seconds: 400}

	const host, rest = "host         1.2.0, running for 3 days\n", "declaration  site, from a file (generation 2), 3 h ago\n" +
		"resources    3 owned, all as declared\ncontent      2 blobs, 3.0 MiB\nlast pass    4 min ago (start and timer), took 12 ms\n"
	const alpha = "node         alpha (a1b2) of mesh home\n"
	for name, c := range map[string]struct {
		st   service.Status
		want string
	}{
		"nothing yet": {service.Status{State: service.StateHosted, Running: true, Version: "1.2.0"},
			"state        hosted\nhost         1.2.0, running\ndeclaration  none yet\nresources    0 owned, all as declared\ncontent      0 blobs, 0 B\n"},
		"hosted":       {runs, "state        hosted\n" + host + rest},
		"enrolled":     {linked(client.State{Connected: true, Since: ago(58 * time.Minute), Address: "10.0.0.1:8443"}), "state        enrolled\n" + alpha + "link         up for 58 min, to 10.0.0.1:8443\n" + host + rest},
		"disconnected": {linked(client.State{Since: ago(5 * time.Minute), Error: "no route"}), "state        disconnected\n" + alpha + "link         down for 5 min: no route\n" + host + rest},
		"never up":     {linked(client.State{Error: "no route"}), "state        disconnected\n" + alpha + "link         down: no route\n" + host + rest},
		"just started": {linked(client.State{}), "state        disconnected\n" + alpha + "link         down: it is being tried for the first time\n" + host + rest},
		"revoked": {linked(client.State{Revoked: "it was lost"}), "state        disconnected, revoked\n" + alpha +
			"link         revoked: it was lost; a new token makes it a node again: mesh-host enrol -\n" + host + rest},
		"stopped": {stopped, "state        disconnected\n" + alpha + "link         not held: the service is not running\n" +
			"host         1.2.0, not running: nothing is put right until it is; mesh-host run --root /m\n" + rest},
		"failing": {failing, "state        hosted, 4 resources are not as declared, 1 warning\n" + host +
			strings.Replace(rest, "all as declared", "1 failed, 1 drifted, 1 skipped, 1 held", 1) +
			"\nwarning: the state of this host cannot be written | and nothing is changed\n" +
			"\nfailed   process:web, for 3 h, in the last 18 passes\n         exited with 1, halted\n" +
			"drifted  file:/etc/motd\uFFFD[2J\n         content\n" +
			"skipped  file:/srv/b, in the last pass\nheld     package:htop, for 50 s\n"},
		"busy": {long, "state        hosted\n" + host + strings.Replace(rest, "12 ms", "2 min", 1) + "busy         with container:db for 6 min\n"},
	} {
		if got := seen(t, &program{}, c.st); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestStatusShowsTheWorstOfManyThings(t *testing.T) {
	st := service.Status{State: service.StateHosted, Running: true}
	for i := range 50 {
		st.Off = append(st.Off, service.Off{Key: fmt.Sprintf("file:/srv/%d", i), There: "failed"})
	}
	if out := seen(t, &program{}, st); strings.Count(out, "\nfailed  ") != 20 || !strings.HasSuffix(out, "file:/srv/19\n\n30 more; --verbose shows all\n") {
		t.Errorf("%s", out)
	}
	if out := seen(t, &program{verbose: true}, st); strings.Count(out, "\nfailed  ") != 50 || !strings.HasSuffix(out, "file:/srv/49\n") {
		t.Errorf("%s", out)
	}
}

// TestStatusForProgramsIsStable: scripts read these names. A new one may be added.
func TestStatusForProgramsIsStable(t *testing.T) {
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	st := service.Status{
		State: service.StateEnrolled, Running: true, Since: at, Version: "1.2.0", Mesh: "home", Node: "alpha", NodeID: "a1b2", Owned: 3,
		Declaration: &store.Wanted{Source: store.SourceLink, Mesh: "home", Epoch: 1, Node: "a1b2", Generation: 2, Name: "site", Digest: "sha256:00", At: at, Bundle: "sha256:01"},
		Last: &link.Report{ID: "0", Source: "link", Mesh: "home", Epoch: 1, Generation: 2, Declaration: "sha256:00", Trigger: "timer", Started: at, Finished: at, Version: "1.2.0", Installed: "1.2.1",
			Resources: []link.ResourceReport{{Key: "file:/a", ID: "a", Outcome: "failed", Error: "no", Note: "but", Since: &at}}},
		Off:      []service.Off{{Key: "file:/a", There: "failed", Differences: []string{"no"}, Since: at, Times: 18}},
		Link:     &client.State{Connected: true, Since: at, Address: "h:1", Error: "e", Revoked: "r"},
		Content:  service.Content{Blobs: 1, Bytes: 2},
		Busy:     &apply.Busy{Key: "file:/a", Since: at, Seconds: 3},
		Warnings: []string{"w"},
	}
	var out bytes.Buffer
	p := &program{std: cli.Stdio{Out: &out}, json: true}
	if err := p.print(st, nil); err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				names[path+name] = true
				walk(path+name+".", value)
			}
		case []any:
			for _, each := range v {
				walk(path, each)
			}
		}
	}
	walk("", got)
	for _, name := range strings.Fields(`state running since version mesh node node_id owned warnings
		declaration declaration.source declaration.mesh declaration.epoch declaration.node declaration.generation declaration.name declaration.digest declaration.at declaration.bundle
		last last.id last.source last.mesh last.epoch last.generation last.declaration last.trigger last.started last.finished last.version last.installed
		last.resources last.resources.key last.resources.id last.resources.outcome last.resources.error last.resources.note last.resources.since
		off off.key off.there off.differences off.since off.times link link.connected link.since link.address link.error link.revoked
		content content.blobs content.bytes busy busy.key busy.since busy.seconds`) {
		if !names[name] {
			t.Errorf("%s is gone", name)
		}
	}
}
