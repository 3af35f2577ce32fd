package container

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/resourcetest"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// The images that the tests with the fake run.
var imagesOf = sync.OnceValue(func() (out [3]testImage) {
	for i, entrypoint := range []string{"/program", "/program", "/nothing"} {
		var err error
		if out[i], err = newImage([]byte("x"), fmt.Sprint(i), entrypoint); err != nil {
			panic(err)
		}
	}
	return out
})

func imageDigest(i int) digest.Digest { return imagesOf()[i].manifest }

func spec(image digest.Digest, members string) string {
	return fmt.Sprintf(`{"type":"container","name":"web","image":%q%s}`, image, members)
}

// engineDir is where the fake keeps what it has.
func engineDir(l layout.Layout) string { return l.Path("/engine") }

func suite(flavor string) resourcetest.Suite {
	fixed := func(spec string) func(layout.Layout) resource.Want {
		return func(layout.Layout) resource.Want {
			r, err := declaration.FromSpec("web", []byte(spec))
			if err != nil {
				panic(err)
			}
			return resource.Want{Resource: r, Spec: r.Spec()}
		}
	}
	edit := func(change func(f *fake)) func(*testing.T, layout.Layout) {
		return func(t *testing.T, l layout.Layout) { change(&fake{t: t, dir: engineDir(l)}) }
	}
	change := func(change func(*kept)) func(*testing.T, layout.Layout) {
		return edit(func(f *fake) {
			k := f.containers()["web"]
			change(&k)
			f.put("web", k)
		})
	}
	return resourcetest.Suite{
		New: func(t *testing.T, l layout.Layout) resource.Kind {
			store, err := content.Open(l.Root + ".content")
			must(t, err)
			k := New(Config{Layout: l, Content: store, Socket: newFake(t, engineDir(l), fmt.Sprintf("%s.%d.sock", l.Root, os.Getpid()), flavor).socket})
			k.settle = time.Millisecond
			return k
		},
		Prepare: func(t *testing.T, l layout.Layout) {
			store, err := content.Open(l.Root + ".content")
			must(t, err)
			for _, i := range imagesOf() {
				i.put(t, store)
			}
			must(t, os.Mkdir(engineDir(l), 0o755))
		},
		Want:  fixed(spec(imageDigest(0), "")),
		Other: fixed(spec(imageDigest(1), `,"args":["a"],"env":{"A":"1"}`)),
		Foreign: edit(func(f *fake) {
			f.put("web", kept{ID: strings.Repeat("1", 64), Image: "sha256:other", Status: "running", Started: "2020-01-01T00:00:00Z"})
		}),
		Drifts: map[string]func(*testing.T, layout.Layout){
			"gone":         edit(func(f *fake) { f.drop("web") }),
			"stopped":      change(func(k *kept) { k.Status, k.Exit = "exited", 137 }),
			"paused":       change(func(k *kept) { k.Status = "paused" }),
			"half removed": change(func(k *kept) { k.Status = "dead" }),
			"never begun":  change(func(k *kept) { k.Status = "created" }),
			"image":        change(func(k *kept) { k.Image = string(imagesOf()[1].config) }),
			"environment":  change(func(k *kept) { k.Body.Labels[labelSpec] = "sha256:other" }),
			"restart":      change(func(k *kept) { k.Body.HostConfig.RestartPolicy.Name = "no" }),
			"limits":       change(func(k *kept) { k.Body.HostConfig.Memory = 1 << 30 }),
			"bind":         change(func(k *kept) { k.Body.HostConfig.Mounts = []mount{{Type: "bind", Source: "/", Target: "/host"}} }),
			"renamed": func(t *testing.T, l layout.Layout) {
				must(t, os.Rename(filepath.Join(engineDir(l), "container-web"), filepath.Join(engineDir(l), "container-other")))
			},
		},
	}
}

func TestKindKeepsThePromises(t *testing.T) { resourcetest.Run(t, suite("podman")) }

func TestKindKeepsThePromisesWithDocker(t *testing.T) { resourcetest.Run(t, suite("docker")) }

// A bench is a fake with the kind in front of it.
type bench struct {
	*testing.T
	fake   *fake
	proxy  *proxy
	layout layout.Layout
	store  *content.Store
	kind   *Kind
}

func newBench(t *testing.T, flavor string) *bench {
	b := &bench{T: t, layout: layout.Layout{Root: t.TempDir()}}
	b.fake = newFake(t, engineDir(b.layout), filepath.Join(shortDir(t), "d.sock"), flavor)
	b.proxy = newProxy(t, b.fake.socket)
	var err error
	b.store, err = content.Open(b.layout.Content())
	must(t, err)
	for _, i := range imagesOf() {
		i.put(t, b.store)
	}
	b.fresh()
	return b
}

// fresh is the host after it was killed.
func (b *bench) fresh() {
	b.kind = New(Config{Layout: b.layout, Content: b.store, Socket: b.proxy.socket})
	b.kind.settle = time.Millisecond
	b.proxy.begin(0, false, false)
}

func (b *bench) check(w resource.Want, prior *resource.Record) resource.State {
	b.Helper()
	st, err := b.kind.Check(b.Context(), w, prior)
	if err != nil {
		b.Fatalf("Check: %v", err)
	}
	return st
}

func (b *bench) apply(w resource.Want, prior *resource.Record) *resource.Record {
	b.Helper()
	found := b.check(w, prior)
	if err := b.kind.Apply(b.Context(), w, prior, found); err != nil {
		b.Fatalf("Apply: %v", err)
	}
	rec := recordOf(w, prior, found)
	if st := b.check(w, rec); !st.Same {
		b.Fatalf("after Apply: %+v", st)
	}
	return rec
}

func (b *bench) fails(w resource.Want, prior *resource.Record) string {
	b.Helper()
	err := b.kind.Apply(b.Context(), w, prior, b.check(w, prior))
	if err == nil {
		b.Fatal("Apply is content")
	}
	return err.Error()
}

// state is what the runtime has: containers by name, with their image and
// whether they run, and images.
func (b *bench) state() string {
	var out []string
	for name, k := range b.fake.containers() {
		out = append(out, fmt.Sprintf("%s: %s of %s", name, k.Status, k.Image))
	}
	for _, i := range b.fake.images() {
		out = append(out, fmt.Sprintf("%s: %q", i.ID, i.RepoTags))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// A host that is killed at any call of a replacement, before the runtime hears of
// it or after it did what was asked, ends where one ends that is not.
func TestC01C03KilledAtEveryCallOfAReplacement(t *testing.T) {
	for _, flavor := range []string{"podman", "docker"} {
		for _, from := range []string{"ours", "somebody's"} {
			t.Run(flavor+" "+from, func(t *testing.T) { killAtEveryCall(t, flavor, from == "ours") })
		}
	}
}

func killAtEveryCall(t *testing.T, flavor string, ours bool) {
	one, two := wish(t, spec(imageDigest(0), "")), wish(t, spec(imageDigest(1), ""))
	two.Resource.TakeOver = !ours
	begin := func(t *testing.T) (*bench, *resource.Record) {
		b := newBench(t, flavor)
		if ours {
			return b, b.apply(one, nil)
		}
		b.fake.put("web", kept{ID: strings.Repeat("a", 64), Image: "sha256:somebody", Status: "running", Started: "2020-01-01T00:00:00Z",
			Body: body{HostConfig: hostConfig{RestartPolicy: restartPolicy{"always"}}}})
		return b, nil
	}
	clean, rec := begin(t)
	before := clean.state()
	clean.proxy.begin(0, false, false)
	applied := clean.apply(two, rec)
	want, calls := clean.state(), len(clean.proxy.heard())
	if calls < 15 {
		t.Fatalf("there are only %d calls: %q", calls, clean.proxy.heard())
	}
	if ours && strings.Count(want, "\n") != 1 {
		t.Fatalf("it ends with\n%s", want)
	}
	if !ours {
		remove(clean, applied)
		if got := clean.state(); got != before {
			t.Fatalf("after Remove there is\n%s\nand before there was\n%s", got, before)
		}
	}
	for cut := 1; cut <= calls; cut++ {
		for _, after := range []bool{false, true} {
			b, rec := begin(t)
			found := b.check(two, rec)
			b.proxy.begin(cut, after, false)
			err := b.kind.Apply(t.Context(), two, rec, found)
			calls := b.proxy.heard()
			if !b.proxy.wasCut() {
				continue // the last ones are those of the Check
			}
			b.fresh()
			// What the engine's settle does with the intent that is open.
			st := b.check(two, rec)
			if rec == nil && (st.Same || string(st.Found) != string(found.Found)) {
				rec = recordOf(two, nil, found)
			}
			if !st.Same {
				rec = b.apply(two, rec)
			}
			_ = b.kind.prune(t.Context(), must1(b.kind.connect(t.Context(), b.fake.socket)))
			if got := b.state(); got != want {
				t.Fatalf("cut (after: %v) at %q (%v), it ends with\n%s\nwant\n%s", after, calls, err, got, want)
			}
			if ours {
				continue
			}
			if rec == nil {
				rec = recordOf(two, nil, found)
			}
			remove(b, rec)
			if got := b.state(); got != before {
				t.Fatalf("cut (after: %v) at %q: after Remove there is\n%s\nand before there was\n%s", after, calls, got, before)
			}
		}
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func remove(b *bench, rec *resource.Record) {
	b.Helper()
	for range 2 {
		if out, note, err := b.kind.Remove(b.Context(), *rec); out != declaration.Removed || note != "" || err != nil {
			b.Fatalf("Remove: %q, %q, %v", out, note, err)
		}
	}
}

func TestWhatDoesNotStartGivesTheOldOneBack(t *testing.T) {
	b := newBench(t, "docker")
	rec := b.apply(wish(t, spec(imageDigest(0), "")), nil)
	id := b.fake.containers()["web"].ID
	for name, bad := range map[string]string{
		"no such program": spec(imageDigest(2), `,"command":["/nothing"]`),
		"ends at once":    spec(imageDigest(0), `,"args":["exit"]`),
		"refused":         spec(imageDigest(0), `,"env":{"A":"refuse"}`),
		"no such path":    spec(imageDigest(0), `,"mounts":[{"target":"/x","path":"/not/there"}]`),
	} {
		said := b.fails(wish(t, bad), rec)
		all := b.fake.containers()
		if k := all["web"]; k.ID != id || k.Status != "running" || len(all) != 1 {
			t.Errorf("%s: %q, and there is %+v", name, said, all)
		}
	}
}

func TestC01StoppedOrHalfRemovedIsReplaced(t *testing.T) {
	for _, status := range []string{"exited", "created", "paused", "dead", "removing"} {
		b := newBench(t, "docker")
		w := wish(t, spec(imageDigest(0), ""))
		rec := b.apply(w, nil)
		k := b.fake.containers()["web"]
		k.Status = status
		b.fake.put("web", k)
		b.apply(w, rec)
		all := b.fake.containers()
		if len(all) != 1 || all["web"].Status != "running" {
			t.Errorf("%s: %+v", status, all)
		}
		remove(b, rec)
	}
}

func TestC02ForeignIsRefusedUntouched(t *testing.T) {
	b := newBench(t, "podman")
	w := wish(t, spec(imageDigest(0), ""))
	b.fake.put("web", kept{ID: strings.Repeat("a", 64), Status: "running", Started: "2020-01-01T00:00:00Z"})
	before := b.state()
	if st := b.check(w, nil); !st.Foreign || st.Same {
		t.Errorf("%+v", st)
	}
	for _, rec := range []*resource.Record{nil, recordOf(w, nil, resource.State{})} {
		if said := b.fails(w, rec); !strings.Contains(said, "exists and is not ours") {
			t.Errorf("%q", said)
		}
	}
	if out, _, err := b.kind.Remove(t.Context(), *recordOf(w, nil, resource.State{})); out != declaration.Removed || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if b.state() != before || len(b.proxy.changes()) > 0 {
		t.Errorf("%q", b.proxy.changes())
	}
}

func TestH06SecondPassOnlyAsks(t *testing.T) {
	b := newBench(t, "podman")
	w := wish(t, spec(imageDigest(0), ""))
	rec := b.apply(w, nil)
	b.proxy.begin(0, false, false)
	b.check(w, rec)
	if want := []string{"GET /_ping", "GET /containers/web/json", "GET /containers/json"}; !slices.Equal(b.proxy.heard(), want) {
		t.Errorf("it calls %q, want %q", b.proxy.heard(), want)
	}
}

func TestC06RemovedByHandComesBackWithoutAPull(t *testing.T) {
	b := newBench(t, "podman")
	w := wish(t, spec(imageDigest(0), ""))
	rec := b.apply(w, nil)
	b.fake.drop("web")
	b.proxy.begin(0, false, false)
	b.apply(w, rec)
	for _, c := range b.proxy.changes() {
		if strings.HasPrefix(c, "POST /images/") {
			t.Errorf("it called %s", c)
		}
	}
}

func TestPinnedReferenceIsPulledOnce(t *testing.T) {
	b := newBench(t, "podman")
	id, d := digest.FromString("image"), digest.FromString("manifest")
	ref := "registry.example/team/app@" + string(d)
	w := wish(t, `{"type":"container","name":"web","image":"registry.example/team/app:1@`+string(d)+`"}`)
	if said := b.fails(w, nil); !strings.Contains(said, `cannot pull image "`+ref+`": dial tcp: connection refused`) {
		t.Errorf("%q", said)
	}
	b.fake.registry[ref] = id
	rec := b.apply(w, nil)
	b.fake.drop("web")
	delete(b.fake.registry, ref)
	b.apply(w, rec)
	remove(b, rec)
	if got := b.state(); got != "" {
		t.Errorf("there is %s", got)
	}
}

func TestC05RuntimeThatIsDownIsNamed(t *testing.T) {
	l := layout.Layout{Root: shortDir(t)}
	k := New(Config{Layout: l})
	w := wish(t, spec(imageDigest(0), ""))
	unsupported := func(when string) {
		t.Helper()
		if _, err := k.Check(t.Context(), w, nil); !isUnsupported(err) {
			t.Errorf("%s: %v", when, err)
		}
	}
	unsupported("nothing")
	if out, note, err := k.Remove(t.Context(), *recordOf(w, nil, resource.State{})); out != declaration.Released || note == "" || err != nil {
		t.Errorf("%q, %q, %v", out, note, err)
	}
	for _, r := range []struct{ socket, program string }{
		{l.Path("/run/podman/podman.sock"), l.Path("/usr/bin/podman")}, {l.Path("/run/docker.sock"), l.Path("/usr/bin/dockerd")},
	} {
		// What docker makes when it is to hand on a socket that is not there.
		must(t, os.MkdirAll(r.socket, 0o755))
		unsupported("a directory in the socket's place")
		must(t, os.MkdirAll(filepath.Dir(r.program), 0o755))
		must(t, os.WriteFile(r.program, nil, 0o755))
		for range 2 {
			_, err := k.Check(t.Context(), w, nil)
			if err == nil || isUnsupported(err) || !strings.Contains(err.Error(), fmt.Sprintf("does not run: there is no socket %q", r.socket)) {
				t.Errorf("%v", err)
			}
			must(t, os.RemoveAll(r.socket))
		}
		must(t, os.Remove(r.program))
		leftSocket(t, r.socket)
		if _, err := k.Check(t.Context(), w, nil); !isUnreachable(err) || !strings.Contains(err.Error(), r.socket) {
			t.Errorf("%v", err)
		}
		must(t, os.Remove(r.socket))
	}
}

// leftSocket is what one who was killed leaves.
func leftSocket(t *testing.T, path string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	must(t, l.Close())
}

func TestRuntimesThatCanBeAsked(t *testing.T) {
	l := layout.Layout{Root: shortDir(t)}
	k := New(Config{Layout: l})
	podman, docker := l.Path("/run/podman/podman.sock"), l.Path("/run/docker.sock")
	are := func(when string, want ...string) {
		t.Helper()
		if got, err := k.sockets(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", when, got, err)
		}
	}
	leftSocket(t, docker)
	must(t, os.MkdirAll(podman, 0o755))
	are("a directory in podman's place", docker)
	must(t, os.Remove(podman))
	leftSocket(t, podman)
	are("both", podman, docker)
	must(t, os.Remove(docker))
	must(t, os.Symlink(podman, docker))
	are("podman-docker's link", podman)
	must(t, os.Remove(podman))
	must(t, os.Symlink(podman, podman))
	if got, err := k.sockets(); err == nil || isUnsupported(err) || !strings.Contains(err.Error(), "cannot look for the container runtime") {
		t.Errorf("a place that cannot be looked at: %q, %v", got, err)
	}
}

func TestVersionIsNegotiated(t *testing.T) {
	for has, want := range map[string]string{"1.41": "/v1.41", "1.44": "/v1.44", "1.52": "/v1.44", "1.40": "/v1.40", "1.39": "", "2.0": "", "": ""} {
		b := newBench(t, "docker")
		b.fake.api = has
		r, err := b.kind.connect(t.Context(), b.fake.socket)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q: no error", has)
		case want != "" && (err != nil || r.version != want):
			t.Errorf("%q: %v, %v", has, r, err)
		}
	}
}

func TestSecretsAreNotRepeated(t *testing.T) {
	b := newBench(t, "podman")
	must(t, os.MkdirAll(b.layout.Path("/etc"), 0o755))
	file := b.layout.Path("/etc/env")
	w := wish(t, spec(imageDigest(0), `,"env_from":"/etc/env"`))
	for content, want := range map[string]string{
		"PASSWORD=refuse-hunter2\n":         "cannot use the environment PASSWORD=…",
		"hunter2\n":                         "line 1 is not NAME=VALUE",
		"A=1\n=hunter2\n":                   "line 2 is not NAME=VALUE",
		"A=hunter2\x00\n":                   "line 1 holds a NUL byte",
		strings.Repeat("#hunter2\n", 1<<17): "is longer than 1048576 bytes",
	} {
		must(t, os.WriteFile(file, []byte(content), 0o600))
		st, err := b.kind.Check(t.Context(), w, nil)
		if err == nil {
			err = b.kind.Apply(t.Context(), w, nil, st)
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.20q: %v", content, err)
		}
	}
	must(t, os.WriteFile(file, []byte("# hunter\n\nPASSWORD=a=b \n"), 0o600))
	rec := b.apply(w, nil)
	if env := b.fake.containers()["web"].Body.Env; !slices.Equal(env, []string{"PASSWORD=a=b "}) {
		t.Errorf("%q", env)
	}
	must(t, os.WriteFile(file, []byte("PASSWORD=hunter3\n"), 0o600))
	st := b.check(w, rec)
	if st.Same || !slices.Equal(st.Differences, []string{"env PASSWORD"}) {
		t.Errorf("%+v", st)
	}
	b.apply(w, rec)
	// A link does not lead out of the root.
	must(t, os.Remove(file))
	must(t, os.Symlink("/etc/passwd", file))
	if _, err := b.kind.Check(t.Context(), w, rec); err == nil {
		t.Error("it read this machine's /etc/passwd")
	}
}
