package container

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func TestLife(t *testing.T) {
	for name, c := range map[string]struct {
		policy       string
		kept         kept
		failing      string
		note, differ string
	}{
		"up":                    {"always", kept{Status: "running", Started: "2020-01-01T00:00:00Z"}, "", "", ""},
		"ended once, long ago":  {"always", kept{Status: "running", Restarts: 1, Started: "2020-01-01T00:00:00Z"}, "", "", ""},
		"keeps ending":          {"always", kept{Status: "running", Restarts: 4, Started: "now"}, "keeps ending: restarted 4 times", "", ""},
		"ran":                   {"never", kept{Status: "exited"}, "", "ended", ""},
		"ran badly":             {"never", kept{Status: "exited", Exit: 3}, "exited with 3", "", ""},
		"ended well":            {"on-failure", kept{Status: "exited"}, "", "ended", ""},
		"stopped by somebody":   {"on-failure", kept{Status: "exited", Exit: 137}, "", "", "not running, exited with 137"},
		"stopped by somebody 2": {"always", kept{Status: "exited"}, "", "", "not running, exited with 0"},
	} {
		b := newBench(t, "podman")
		w := wish(t, spec(imageDigest(0), fmt.Sprintf(`,"restart":%q`, c.policy)))
		rec := b.apply(w, nil)
		k := b.fake.containers()["web"]
		k.Status, k.Exit, k.Restarts, k.Started = c.kept.Status, c.kept.Exit, c.kept.Restarts, c.kept.Started
		if k.Started == "now" {
			k.Started = time.Now().Format(time.RFC3339Nano)
		}
		b.fake.put("web", k)
		st := b.check(w, rec)
		if st.Failing != c.failing || st.Note != c.note || strings.Join(st.Differences, ", ") != c.differ || st.Same != (c.differ == "") {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// TestH12WhatIsYetToComeWasNotAMomentAgo: the clock was set back since, and what
// ended then would be between two starts until it is that time again.
func TestH12WhatIsYetToComeWasNotAMomentAgo(t *testing.T) {
	k := New(Config{Clock: clock.At(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))})
	for at, want := range map[string]struct{ stopped, running life }{
		"2030-01-01T11:59:59Z": {life{failing: "exited with 1, restarted 2 times"}, life{failing: "keeps ending: restarted 2 times"}},
		"2030-01-01T11:00:00Z": {life{difference: "not running, exited with 1"}, life{}},
		"2031-01-01T12:00:00Z": {life{difference: "not running, exited with 1"}, life{}},
	} {
		c := &inspected{RestartCount: 2}
		c.State.Status, c.State.ExitCode, c.State.StartedAt, c.State.FinishedAt = "stopped", 1, at, at
		if got := k.lifeOf(&runtime{}, c, declaration.RestartAlways); got != want.stopped {
			t.Errorf("stopped at %s: %+v", at, got)
		}
		c.State.Status, c.State.Running = "running", true
		if got := k.lifeOf(&runtime{}, c, declaration.RestartAlways); got != want.running {
			t.Errorf("runs since %s: %+v", at, got)
		}
	}
}

// What real runtimes said of a container is found to be what was declared, and
// any other value of it is not.
func TestRecordedAnswersAreRead(t *testing.T) {
	for _, flavor := range []string{"podman", "docker"} {
		for _, name := range []string{"all", "network"} {
			t.Run(flavor+" "+name, func(t *testing.T) {
				r := recorded(t, flavor, name)
				k := New(Config{Layout: layout.Layout{Root: t.TempDir()}})
				must(t, os.MkdirAll(k.Layout.Path("/etc"), 0o755))
				must(t, os.WriteFile(k.Layout.Path("/etc/env"), []byte("# a comment\n\nB=not this\nSECRET=open sesame=\n"), 0o600))
				w := wish(t, string(r.Spec))
				d, err := k.definition(w.Resource.Container)
				must(t, err)
				b, err := json.Marshal(r.Inspect)
				must(t, err)
				var c inspected
				must(t, json.Unmarshal([]byte(strings.ReplaceAll(string(b), "/ROOT", k.Layout.Root)), &c))
				if got := d.configuration(&c); len(got) > 0 {
					t.Errorf("differs: %q", got)
				}
				if !c.madeFor("web") || k.lifeOf(&runtime{}, &c, w.Resource.Container.Restart) != (life{}) {
					t.Errorf("%+v", c)
				}
				if name == "network" {
					c.NetworkSettings.Networks = map[string]json.RawMessage{"other": nil}
					if got := d.configuration(&c); !slices.Equal(got, []string{"network"}) {
						t.Errorf("%q", got)
					}
					return
				}
				for want, change := range map[string]func(*declaration.Container){
					"command":                 func(c *declaration.Container) { c.Command = []string{"/program", "two", "words"} },
					"args":                    func(c *declaration.Container) { c.Args = nil },
					"env A":                   func(c *declaration.Container) { c.Env["A"] = "2" },
					"label x":                 func(c *declaration.Container) { c.Labels["x"] = "z" },
					"user":                    func(c *declaration.Container) { c.User = "1" },
					"network":                 func(c *declaration.Container) { c.Network = "host" },
					"restart":                 func(c *declaration.Container) { c.Restart = declaration.RestartAlways },
					"limits.memory_mib":       func(c *declaration.Container) { c.Limits.MemoryMiB = 0 },
					"limits.cpu_percent":      func(c *declaration.Container) { c.Limits.CPUPercent = 51 },
					"limits.processes":        func(c *declaration.Container) { c.Limits.Processes = 1 },
					"ports":                   func(c *declaration.Container) { c.Ports = c.Ports[1:] },
					"mount /h":                func(c *declaration.Container) { c.Mounts[0].ReadOnly = false },
					"mount /v":                func(c *declaration.Container) { c.Mounts[2].Volume = "w" },
					"mount /r":                func(c *declaration.Container) { c.Mounts[4].ReadOnly = false },
					"mount /w (not declared)": func(c *declaration.Container) { c.Mounts = slices.Delete(c.Mounts, 1, 2) },
				} {
					w := wish(t, string(r.Spec))
					change(w.Resource.Container)
					other, err := k.definition(w.Resource.Container)
					must(t, err)
					if got := other.configuration(&c); !slices.Equal(got, []string{want}) {
						t.Errorf("%q, want %q", got, want)
					}
					if other.digest == d.digest {
						t.Errorf("%s: has the same digest", want)
					}
				}
			})
		}
	}
}

// The same wish gives the same digest in every version of the host: another one
// replaces every container of a fleet.
func TestDigestOfADefinitionStays(t *testing.T) {
	k := New(Config{})
	d, err := k.definition(wish(t, `{"type":"container","name":"web","image":"sha256:`+strings.Repeat("0", 64)+`","args":["a"],"env":{"B":"2","A":"1"},
		"mounts":[{"target":"/d","path":"/srv"},{"target":"/v","volume":"vol"}],"ports":[{"host":80,"container":8080}]}`).Resource.Container)
	must(t, err)
	b, err := json.Marshal(d.body)
	must(t, err)
	const want = `{"Image":"sha256:0000000000000000000000000000000000000000000000000000000000000000","Cmd":["a"],"Env":["A=1","B=2"],` +
		`"ExposedPorts":{"8080/tcp":{}},"HostConfig":{"NetworkMode":"bridge","RestartPolicy":{"Name":"always"},` +
		`"LogConfig":{"Type":"json-file","Config":{"max-file":"3","max-size":"10m"}},"PortBindings":{"8080/tcp":[{"HostIp":"","HostPort":"80"}]},` +
		`"Mounts":[{"Type":"bind","Source":"/srv","Target":"/d"},{"Type":"volume","Source":"vol","Target":"/v"}]}}`
	if string(b) != want || d.digest != string(digest.FromString(want)) {
		t.Errorf("%s\nwant\n%s", b, want)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	b := newBench(t, "podman")
	w := wish(t, spec(imageDigest(0), ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.kind.Check(ctx, w, nil); !isUnreachable(err) || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("%v", err)
	}
	if err := decode(strings.NewReader(strings.Repeat(" ", maxAnswer+1)), new(int)); err == nil || !strings.Contains(err.Error(), "is longer than") {
		t.Errorf("%v", err)
	}
	if got := line("a\x1b[31m\nb\xff" + strings.Repeat("x", 2*maxReason)); strings.ContainsAny(got, "\x1b\n") || len(got) > maxReason+10 {
		t.Errorf("%q", got)
	}
	if err := progress(strings.NewReader("{}\n" + strings.Repeat("x", maxLine+1))); err == nil {
		t.Error("a line without end is read")
	}
}
