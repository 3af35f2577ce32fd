//go:build machine

package container

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

func TestEngines(t *testing.T) {
	for _, name := range []string{"podman", "docker"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, theEngine(t, name))
			for _, test := range []struct {
				name string
				run  func(*lab)
			}{
				{"C-06 Life", life1},
				{"AllMembers", allMembers},
				{"StateIsCovered", stateIsCovered},
				{"C-01 Drift", driftIsRepaired},
				{"C-03 ChangedImage", changedImage},
				{"BadImage", badImage},
				{"C-02 Foreign", foreign},
				{"Failing", failing},
				{"TenPasses", tenPasses},
				{"C-04 Flood", flood},
				{"Pull", pull},
				{"C-03 Killed", killed},
				{"C-05 Down", down}, // last: it starts the runtime anew
			} {
				t.Run(test.name, func(t *testing.T) {
					in := *l
					in.T = t
					in.fresh()
					defer in.clean()
					test.run(&in)
				})
			}
		})
	}
}

func life1(l *lab) {
	w := l.want(l.one, `"network":"host","mounts":[{"target":"/data","volume":"kept"}],"args":["write"]`)
	if st := l.check(w, nil); st.Exists || st.Same || st.Found != nil {
		l.Fatalf("%+v", st)
	}
	rec := l.apply(w, nil)
	id := l.the("web").ID
	if got := l.images(); !slices.Equal(got, []string{imageName + ":" + l.one.Encoded()}) {
		l.Errorf("images: %q", got)
	}
	// The second pass only asks.
	l.proxy.begin(0, false, false)
	if st := l.check(w, rec); !st.Same || st.Failing != "" || st.Note != "" {
		l.Errorf("%+v", st)
	}
	if st := l.check(w, nil); !st.Same {
		l.Errorf("without a record: %+v", st)
	}
	must(l.T, l.kind.Apply(l.Context(), w, rec, l.check(w, rec)))
	if got := l.proxy.changes(); len(got) > 0 {
		l.Errorf("it changed %q", got)
	}
	// restart_on.
	started := l.the("web").State.StartedAt
	w.Restart = true
	must(l.T, l.kind.Apply(l.Context(), w, rec, l.check(w, rec)))
	w.Restart = false
	if c := l.the("web"); c.ID != id || c.State.StartedAt == started {
		l.Error("not restarted")
	}
	// Removed by hand: back, and no image is brought.
	must(l.T, l.r.remove(l.Context(), id))
	l.proxy.begin(0, false, false)
	l.apply(w, rec)
	for _, c := range l.proxy.changes() {
		if strings.HasPrefix(c, "POST /images/") {
			l.Errorf("it called %s", c)
		}
	}
	l.remove(rec)
	if got := l.names(); len(got) > 0 {
		l.Errorf("containers: %q", got)
	}
	if got := l.images(); len(got) > 0 {
		l.Errorf("images: %q", got)
	}
	var volume struct{ Mountpoint string }
	if ok, err := l.r.get(l.Context(), "/volumes/kept", nil, &volume); !ok || err != nil {
		l.Fatalf("the volume is gone: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(volume.Mountpoint, "kept")); string(b) != "kept" {
		l.Errorf("%q, %v", b, err)
	}
	must(l.T, l.r.delete(l.Context(), "/volumes/kept", nil))
}

// all are all members at once, but for the name of a network.
const all = `"network":"bridge","command":["/program","two words"],"args":["a","b c"],"env":{"A":"1","B":"two words","PATH":"/x"},"env_from":"/etc/env",
"mounts":[{"target":"/h","path":"/srv/dir","read_only":true},{"target":"/w","path":"/srv/dir"},{"target":"/v","volume":"vol"},{"target":"/t","tmpfs":true},{"target":"/r","tmpfs":true,"read_only":true}],
"ports":[{"host":18080,"container":80},{"host":18081,"container":80,"address":"127.0.0.1"},{"host":18082,"container":82,"protocol":"udp"}],
"restart":"on-failure","labels":{"x":"y","empty":""},"user":"1000:1000","limits":{"memory_mib":64,"cpu_percent":50,"processes":100}`

func allMembers(l *lab) {
	must(l.T, os.MkdirAll(l.layout.Path("/srv/dir"), 0o755))
	must(l.T, os.MkdirAll(l.layout.Path("/etc"), 0o755))
	must(l.T, os.WriteFile(l.layout.Path("/etc/env"), []byte("# a comment\n\nB=not this\nSECRET=open sesame=\n"), 0o600))
	w := l.want(l.one, all)
	rec := l.apply(w, nil)
	c := l.the("web")
	for _, want := range []string{"A=1", "B=two words", "SECRET=open sesame=", "MARK=one", "PATH=/x"} {
		if !slices.Contains(c.Config.Env, want) {
			l.Errorf("env lacks %q", want)
		}
	}
	if *record {
		l.record("all", w)
	}
	// What the file says is part of it, and is not told.
	must(l.T, os.WriteFile(l.layout.Path("/etc/env"), []byte("SECRET=other"), 0o600))
	if st := l.check(w, rec); st.Same || !slices.Equal(st.Differences, []string{"env SECRET"}) {
		l.Errorf("%+v", st)
	}
	l.apply(w, rec)
	l.apply(l.want(l.one, `"network":"none"`), rec)
	// A network with a name.
	must(l.T, l.r.post(l.Context(), "/networks/create", nil, map[string]any{"Name": "back"}, nil))
	l.apply(l.want(l.one, `"network":"back"`), rec)
	if *record {
		l.record("network", l.want(l.one, `"network":"back"`))
	}
	l.apply(l.want(l.one, `"network":"bridge"`), rec)
	l.remove(rec)
	must(l.T, l.r.delete(l.Context(), "/networks/back", nil))
	must(l.T, l.r.delete(l.Context(), "/volumes/vol", nil))
}

// Who watches a machine from a container sees it all but the host's state.
func stateIsCovered(l *lab) {
	must(l.T, os.MkdirAll(l.layout.Path("/var/lib/beside"), 0o755))
	for dir, want := range map[string]string{"/m/lib/nox-mesh": "0 []", "/m/lib": "2 [d beside/ d nox-mesh/]"} {
		w := l.want(l.one, `"network":"host","mounts":[{"target":"/m","path":"/var","read_only":true}],"args":["list",`+`"`+dir+`"`+`]`)
		rec := l.apply(w, nil)
		var c struct{ LogPath string }
		_, err := l.r.get(l.Context(), "/containers/web/json", nil, &c)
		must(l.T, err)
		said, err := os.ReadFile(c.LogPath)
		for deadline := time.Now().Add(10 * time.Second); len(said) == 0 && time.Now().Before(deadline); {
			said, err = os.ReadFile(c.LogPath)
		}
		if err != nil || !strings.Contains(string(said), want) {
			l.Errorf("%s: %q, %v", dir, said, err)
		}
		l.remove(rec)
	}
}

// record keeps what the runtime says of the container.
func (l *lab) record(name string, w resource.Want) {
	var raw json.RawMessage
	_, err := l.r.get(l.Context(), "/containers/web/json", nil, &raw)
	must(l.T, err)
	text := strings.ReplaceAll(string(raw), l.layout.Root, "/ROOT")
	text = strings.ReplaceAll(text, l.engine.dir, "/ENGINE")
	var v any
	must(l.T, json.Unmarshal([]byte(text), &v))
	out, err := json.MarshalIndent(map[string]any{"spec": w.Spec, "inspect": v}, "", " ")
	must(l.T, err)
	must(l.T, os.MkdirAll("testdata/"+l.engine.name, 0o755))
	must(l.T, os.WriteFile("testdata/"+l.engine.name+"/"+name+".json", append(out, '\n'), 0o644))
}

func driftIsRepaired(l *lab) {
	w := l.want(l.one, "")
	rec := l.apply(w, nil)
	for name, drift := range map[string]func(){
		"stopped": func() { l.post("/containers/web/stop", url.Values{"t": {"2"}}) },
		"killed":  func() { l.post("/containers/web/kill", nil) },
		"paused":  func() { l.post("/containers/web/pause", nil) },
		"renamed": func() { l.post("/containers/web/rename", url.Values{"name": {"other"}}) },
		"made again": func() {
			c := l.the("web")
			must(l.T, l.r.remove(l.Context(), c.ID))
			b := body{Image: c.Image, Labels: c.Config.Labels, Env: []string{"A=1"}, HostConfig: hostConfig{NetworkMode: "none", RestartPolicy: restartPolicy{"no"}}}
			id, err := l.r.create(l.Context(), "web", b)
			must(l.T, err)
			must(l.T, l.r.start(l.Context(), id))
		},
	} {
		drift()
		if st := l.check(w, rec); st.Same || st.Foreign || len(st.Differences) == 0 {
			l.Errorf("%s: %+v", name, st)
		}
		l.apply(w, rec)
		if got := l.names(); !slices.Equal(got, []string{"web"}) {
			l.Errorf("%s: containers are %q", name, got)
		}
	}
	l.remove(rec)
}

func changedImage(l *lab) {
	rec := l.apply(l.want(l.one, ""), nil)
	first := l.the("web")
	if first.Image != l.oneID {
		l.Errorf("the image is %s, want %s", first.Image, l.oneID)
	}
	l.apply(l.want(l.two, ""), rec)
	c := l.the("web")
	if c.Image != l.twoID || !c.State.Running || c.ID == first.ID {
		l.Errorf("%+v", c)
	}
	if got := l.names(); !slices.Equal(got, []string{"web"}) {
		l.Errorf("containers: %q", got)
	}
	if got := l.images(); !slices.Equal(got, []string{imageName + ":" + l.two.Encoded()}) {
		l.Errorf("images: %q", got)
	}
	l.remove(rec)
}

// badImage: what does not start, or does not live, does not cost what runs.
func badImage(l *lab) {
	w := l.want(l.one, "")
	rec := l.apply(w, nil)
	id := l.the("web").ID
	for _, bad := range []resource.Want{
		l.want(l.bad, ""),
		l.want(l.one, `"network":"host","args":["exit"]`),
		l.want(l.one, `"network":"host","mounts":[{"target":"/x","path":"/not/there"}]`),
		l.want(l.one, `"network":"no-such-network"`),
	} {
		err := l.kind.Apply(l.Context(), bad, rec, l.check(bad, rec))
		if err == nil {
			l.Errorf("%s: Apply is content", bad.Spec)
		}
		if c := l.the("web"); c.ID != id || !c.State.Running {
			l.Errorf("%s: %q: after it there is %+v", bad.Spec, err, c)
		}
		if st := l.check(bad, rec); st.Same {
			l.Errorf("%s: %+v", bad.Spec, st)
		}
		l.apply(w, rec) // nothing of it is left
		if got := l.names(); !slices.Equal(got, []string{"web"}) {
			l.Errorf("containers: %q", got)
		}
	}
	l.remove(rec)
}

func foreign(l *lab) {
	other := l.want(l.one, "")
	other.Resource.Container.Name = "other"
	rec := l.apply(other, nil)
	id, err := l.r.create(l.Context(), "web", body{Image: l.oneID, HostConfig: hostConfig{NetworkMode: "host", RestartPolicy: restartPolicy{"always"}}})
	must(l.T, err)
	must(l.T, l.r.start(l.Context(), id))
	was := l.the("web")

	w := l.want(l.one, "")
	st := l.check(w, nil)
	if !st.Foreign || st.Same || !st.Exists {
		l.Errorf("%+v", st)
	}
	if err := l.kind.Apply(l.Context(), w, nil, st); err == nil || !strings.Contains(err.Error(), "not ours") {
		l.Errorf("%v", err)
	}
	if c := l.the("web"); c.ID != id || c.State.StartedAt != was.State.StartedAt {
		l.Error("it was touched")
	}
	w.Resource.TakeOver = true
	mine := l.apply(w, nil)
	if c := l.the("web"); c.ID == id {
		l.Error("it was not taken over")
	}
	if c := l.the("web" + suffixBefore); c.ID != id || c.State.Running {
		l.Errorf("%+v", c)
	}
	// A reboot starts what was there before.
	must(l.T, l.r.start(l.Context(), id))
	if st := l.check(w, mine); st.Same {
		l.Error("both run")
	}
	l.apply(w, mine)
	w = l.want(l.two, "")
	l.apply(w, mine)
	l.remove(mine)
	if c := l.the("web"); c.ID != id || !c.State.Running || c.HostConfig.RestartPolicy.Name != "always" {
		l.Errorf("not given back: %+v", c)
	}
	l.remove(rec)
}

func failing(l *lab) {
	w := l.want(l.one, `"network":"host","args":["exit"],"restart":"never"`)
	found := l.check(w, nil)
	must(l.T, l.kind.Apply(l.Context(), w, nil, found))
	rec := recordOf(w, nil, found)
	must(l.T, l.r.await(l.Context(), l.the("web").ID))
	if st := l.check(w, rec); !st.Same || st.Failing != "exited with 3" {
		l.Errorf("%+v", st)
	}
	l.remove(rec)
	w = l.want(l.one, `"network":"host","args":["exit"]`)
	must(l.T, l.kind.Apply(l.Context(), w, nil, l.check(w, nil)))
	for l.the("web").RestartCount == 0 {
		time.Sleep(50 * time.Millisecond)
	}
	if st := l.check(w, rec); !st.Same || !strings.Contains(st.Failing, "restarted ") {
		l.Errorf("%+v", st)
	}
	l.remove(rec)
}

// tenPasses: one that does not run brings its image once, however often it is
// tried, and leaves nothing behind. (How often that is, is the engine's to say.)
func tenPasses(l *lab) {
	for _, bad := range []resource.Want{l.want(l.bad, ""), l.want(l.one, `"network":"no-such-network"`)} {
		loads := 0
		for range 10 {
			l.proxy.begin(0, false, false)
			st := l.check(bad, nil)
			if err := l.kind.Apply(l.Context(), bad, nil, st); st.Same || err == nil {
				l.Errorf("%s: %+v, %v", bad.Spec, st, err)
			}
			for _, c := range l.proxy.changes() {
				if strings.HasPrefix(c, "POST /images/") {
					loads++
				}
			}
			if got := l.names(); len(got) > 1 {
				l.Errorf("containers: %q", got)
			}
		}
		if loads != 1 {
			l.Errorf("%s: its image was brought %d times", bad.Spec, loads)
		}
		l.remove(recordOf(bad, nil, resource.State{}))
		if got := l.images(); len(got) > 0 {
			l.Errorf("images: %q", got)
		}
	}
}

func flood(l *lab) {
	w := l.want(l.one, `"network":"host","args":["flood"],"restart":"never"`)
	found := l.check(w, nil)
	must(l.T, l.kind.Apply(l.Context(), w, nil, found))
	var c struct {
		ID, LogPath string
		State       struct{ ExitCode int }
	}
	must(l.T, l.r.await(l.Context(), l.the("web").ID))
	_, err := l.r.get(l.Context(), "/containers/web/json", nil, &c)
	must(l.T, err)
	if c.LogPath == "" || c.State.ExitCode != 0 {
		l.Fatalf("%+v", c)
	}
	logs, err := filepath.Glob(c.LogPath + "*")
	must(l.T, err)
	for _, name := range logs {
		fi, err := os.Stat(name)
		must(l.T, err)
		if fi.Size() > 11<<20 {
			l.Errorf("%s has %d bytes", name, fi.Size())
		}
	}
	if len(logs) == 0 || len(logs) > 3 {
		l.Errorf("logs: %q", logs)
	}
	l.remove(recordOf(w, nil, found))
}

func pull(l *lab) {
	w := wish(l.T, `{"type":"container","name":"web","image":"127.0.0.1:1/x/y:1@`+string(l.one)+`","network":"host"}`)
	err := l.kind.Apply(l.Context(), w, nil, l.check(w, nil))
	if err == nil || !strings.Contains(err.Error(), "cannot pull image \"127.0.0.1:1/x/y@"+string(l.one)+"\"") || !strings.Contains(err.Error(), "connection refused") {
		l.Errorf("%v", err)
	}
	if got := l.names(); len(got) > 0 {
		l.Errorf("containers: %q", got)
	}
	if l.engine.name != "podman" {
		return // docker's own store forgets the digest of a manifest
	}
	rec := l.apply(l.want(l.one, ""), nil)
	l.proxy.begin(0, false, false)
	l.apply(w, rec)
	if slices.Contains(l.proxy.changes(), "POST /images/create") {
		l.Error("an image that is here was pulled")
	}
	l.remove(rec)
}

// killed cuts the host off at each call of a replacement that changes something,
// before and after it is done; the next pass must end as if nothing had happened.
// (The images are there: that they are brought is in the test with a runtime that
// is quicker.)
func killed(l *lab) {
	for _, i := range []digest.Digest{l.one, l.two} {
		w := l.want(i, "")
		w.Resource.Container.Name = "keeps-" + i.Encoded()[:8]
		l.apply(w, nil)
	}
	others := l.names()
	wants := []resource.Want{l.want(l.one, ""), l.want(l.two, "")}
	ids := []string{l.oneID, l.twoID}
	rec, n, calls := l.apply(wants[0], nil), 0, 0
	for cut := 1; ; cut++ {
		done := true
		for _, after := range []bool{false, true} {
			n = 1 - n
			w := wants[n]
			found := l.check(w, rec)
			l.proxy.begin(cut, after, true)
			err := l.kind.Apply(l.Context(), w, rec, found)
			changes, was := l.proxy.changes(), l.proxy.wasCut()
			if was {
				done = false
			} else if err != nil {
				l.Errorf("%v", err)
			}
			l.fresh()
			if st := l.check(w, rec); st.Foreign {
				l.Fatalf("cut at %q: %+v", changes, st)
			} else if !st.Same {
				l.apply(w, rec)
			}
			if got := l.names(); !slices.Equal(got, append(slices.Clone(others), "web")) {
				l.Errorf("cut at %q: containers are %q", changes, got)
			}
			if c := l.the("web"); c.Image != ids[n] || !c.State.Running {
				l.Errorf("cut at %q: %+v", changes, c)
			}
		}
		if done {
			break
		}
		calls++
	}
	if calls < 7 {
		l.Errorf("it was cut at %d calls only", calls)
	}
}

func down(l *lab) {
	w := l.want(l.one, "")
	rec := l.apply(w, nil)
	l.kind = New(Config{Layout: l.layout, Content: l.store, Socket: l.engine.socket()})
	l.engine.down(l.T)
	if _, err := l.kind.Check(l.Context(), w, rec); err == nil || !strings.Contains(err.Error(), l.engine.socket()) {
		l.Errorf("%v", err)
	}
	if _, _, err := l.kind.Remove(l.Context(), *rec); err == nil || !strings.Contains(err.Error(), l.engine.socket()) {
		l.Errorf("%v", err)
	}
	l.engine.up(l.top)
	if !l.check(w, rec).Same {
		l.apply(w, rec)
	}
	l.remove(rec)
}
