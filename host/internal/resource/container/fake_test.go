package container

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

// A fake is a runtime at the other end of the socket. What it has it keeps in
// files, one a container, so that a test sees whether it was touched and a
// process that is killed leaves what a runtime would have. Its answers have the
// shape that a real one's have (testdata).
type fake struct {
	t      *testing.T
	dir    string // its files; what is not finished is beside it
	socket string
	flavor string
	api    string
	mu     sync.Mutex
	// ended is closed and made anew when a container ends.
	ended chan struct{}
	// registry is what can be pulled: manifests by reference, as loaded images.
	registry map[string]digest.Digest
}

// A kept is a container of the fake's.
type kept struct {
	ID, Image, Status string
	Exit, Restarts    int
	Started           string
	Body              body
}

func newFake(t *testing.T, dir, socket, flavor string) *fake {
	t.Helper()
	f := &fake{t: t, dir: dir, socket: socket, flavor: flavor, api: "1.41", ended: make(chan struct{}), registry: map[string]digest.Digest{}}
	l, err := net.Listen("unix", socket)
	must(t, err)
	s := &http.Server{Handler: f.handler()}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	return f
}

func (f *fake) handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /_ping", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", f.api)
		w.Header().Set("Server", map[string]string{"podman": "Libpod/4.3.1 (linux)", "docker": "Docker/20.10.24 (linux)"}[f.flavor])
	})
	m.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"ApiVersion": f.api, "MinAPIVersion": "1.44"})
	})
	m.HandleFunc("GET /containers/json", f.list)
	m.HandleFunc("GET /containers/{id}/json", f.with(f.inspect))
	m.HandleFunc("POST /containers/create", f.create)
	m.HandleFunc("POST /containers/{id}/wait", f.wait)
	m.HandleFunc("POST /containers/{id}/{verb}", f.with(f.tell))
	m.HandleFunc("DELETE /containers/{id}", f.with(f.remove))
	m.HandleFunc("GET /images/json", f.imageList)
	m.HandleFunc("GET /images/{name...}", f.imageInspect)
	m.HandleFunc("POST /images/load", f.load)
	m.HandleFunc("POST /images/create", f.pull)
	m.HandleFunc("POST /images/{id}/tag", f.tag)
	m.HandleFunc("DELETE /images/{name...}", f.imageRemove)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = versioned.ReplaceAllString(r.URL.Path, "")
		m.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func no(w http.ResponseWriter, status int, format string, args ...any) {
	answer(w, status, map[string]string{"message": fmt.Sprintf(format, args...)})
}

// write puts a file in place whole.
func (f *fake) write(name string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		f.t.Error(err)
	}
	temp := f.dir + ".part"
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		f.t.Error(err)
	}
	if err := os.WriteFile(temp, b, 0o600); err != nil {
		f.t.Error(err)
	}
	if err := os.Rename(temp, filepath.Join(f.dir, name)); err != nil {
		f.t.Error(err)
	}
}

func (f *fake) read(name string, v any) bool {
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		return false
	}
	if err := json.Unmarshal(b, v); err != nil {
		f.t.Error(err)
	}
	return true
}

// containers are all, by name.
func (f *fake) containers() map[string]kept {
	out := map[string]kept{}
	paths, _ := filepath.Glob(filepath.Join(f.dir, "container-*"))
	for _, p := range paths {
		var k kept
		if f.read(filepath.Base(p), &k) {
			out[strings.TrimPrefix(filepath.Base(p), "container-")] = k
		}
	}
	return out
}

func (f *fake) put(name string, k kept) { f.write("container-"+name, k) }

func (f *fake) drop(name string) { _ = os.Remove(filepath.Join(f.dir, "container-"+name)) }

// with finds the container by name, ID, or the beginning of an ID.
func (f *fake) with(do func(w http.ResponseWriter, r *http.Request, name string, k kept)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		id := r.PathValue("id")
		all := f.containers()
		if k, ok := all[id]; ok {
			do(w, r, id, k)
			return
		}
		for name, k := range all {
			if strings.HasPrefix(k.ID, id) {
				do(w, r, name, k)
				return
			}
		}
		no(w, 404, "No such container: %s", id)
	}
}

func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var filter struct{ Label []string }
	if s := r.FormValue("filters"); s != "" {
		_ = json.Unmarshal([]byte(s), &filter)
	}
	out := []map[string]any{}
	for name, k := range f.containers() {
		ok := true
		for _, l := range filter.Label {
			key, value, _ := strings.Cut(l, "=")
			ok = ok && k.Body.Labels[key] == value
		}
		if ok {
			out = append(out, map[string]any{"Id": k.ID, "Names": []string{"/" + name}, "ImageID": k.Image, "Labels": k.Body.Labels, "State": k.Status})
		}
	}
	answer(w, 200, out)
}

// inspect fills what a real runtime said once with what this container has.
func (f *fake) inspect(w http.ResponseWriter, _ *http.Request, name string, k kept) {
	v := recorded(f.t, f.flavor, "all").Inspect
	set := func(in string, values map[string]any) {
		m, ok := v[in].(map[string]any)
		if !ok {
			f.t.Errorf("the recording has no %s", in)
			return
		}
		for key, value := range values {
			m[key] = value
		}
	}
	b, h := k.Body, k.Body.HostConfig
	v["Id"], v["Name"], v["Image"], v["RestartCount"] = k.ID, "/"+name, k.Image, k.Restarts
	running := k.Status == "running" || k.Status == "paused"
	set("State", map[string]any{
		"Status": k.Status, "Running": running, "Paused": k.Status == "paused", "Dead": k.Status == "dead",
		"Restarting": false, "Pid": map[bool]int{true: os.Getpid()}[running], "ExitCode": k.Exit, "StartedAt": k.Started,
	})
	env := slices.Clone(b.Env)
	set("Config", map[string]any{"Env": append(env, "MARK=x"), "Cmd": b.Cmd, "Entrypoint": b.Entrypoint, "User": b.User, "Labels": b.Labels})
	set("HostConfig", map[string]any{
		"NetworkMode": h.NetworkMode, "RestartPolicy": h.RestartPolicy, "PortBindings": h.PortBindings, "Tmpfs": h.Tmpfs,
		"Memory": h.Memory, "NanoCpus": h.NanoCpus, "PidsLimit": h.PidsLimit,
	})
	mounts := []map[string]any{}
	for _, m := range h.Mounts {
		mounts = append(mounts, map[string]any{"Type": m.Type, "Name": map[bool]string{true: m.Source}[m.Type == "volume"],
			"Source": m.Source, "Destination": m.Target, "RW": !m.ReadOnly})
	}
	v["Mounts"] = mounts
	set("NetworkSettings", map[string]any{"Networks": map[string]any{h.NetworkMode: map[string]any{}}})
	answer(w, 200, v)
}

func (f *fake) create(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := r.FormValue("name")
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	var b body
	if err := d.Decode(&b); err != nil {
		no(w, 400, "%v", err)
		return
	}
	all := f.containers()
	if _, ok := all[name]; ok {
		no(w, 409, "the container name %q is already in use", name)
		return
	}
	if i := f.imageBy(b.Image); i == nil {
		no(w, 404, "No such image: %s", b.Image)
		return
	}
	for _, e := range b.Env {
		if strings.Contains(e, "refuse") {
			no(w, 500, "cannot use the environment %s", e)
			return
		}
	}
	n := 0
	f.read("counter", &n)
	f.write("counter", n+1)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", name, n))
	f.put(name, kept{ID: hex.EncodeToString(sum[:]), Image: b.Image, Status: "created", Body: b})
	answer(w, 201, map[string]any{"Id": hex.EncodeToString(sum[:]), "Warnings": []string{}})
}

func (f *fake) tell(w http.ResponseWriter, r *http.Request, name string, k kept) {
	end := func(status string, exit int) {
		k.Status, k.Exit = status, exit
		close(f.ended)
		f.ended = make(chan struct{})
	}
	status := 204
	switch verb := r.PathValue("verb"); verb {
	case "start", "restart":
		switch {
		case k.Status == "dead":
			no(w, 500, "container is dead")
			return
		case verb == "start" && k.Status == "running":
			status = 304
		case slices.Equal(k.Body.Entrypoint, []string{"/nothing"}):
			no(w, 400, "exec: \"/nothing\": no such file or directory")
			return
		case slices.Equal(k.Body.Cmd, []string{"exit"}):
			k.Started = time.Now().Format(time.RFC3339Nano)
			end("exited", 3)
		default:
			k.Status, k.Exit, k.Started = "running", 0, time.Now().Format(time.RFC3339Nano)
		}
	case "stop":
		if k.Status != "running" {
			status = 304
		} else {
			end("exited", 0)
		}
	case "unpause":
		k.Status = "running"
	case "rename":
		to := r.FormValue("name")
		if _, ok := f.containers()[to]; ok {
			no(w, 409, "the container name %q is already in use", to)
			return
		}
		if err := os.Rename(filepath.Join(f.dir, "container-"+name), filepath.Join(f.dir, "container-"+to)); err != nil {
			f.t.Error(err)
		}
		w.WriteHeader(204)
		return
	case "update":
		if f.flavor == "podman" {
			no(w, 404, "Not Found")
			return
		}
		var change struct{ RestartPolicy restartPolicy }
		_ = json.NewDecoder(r.Body).Decode(&change)
		k.Body.HostConfig.RestartPolicy = change.RestartPolicy
		status = 200
	default:
		no(w, 404, "no %s", verb)
		return
	}
	if status != 304 {
		f.put(name, k)
	}
	w.WriteHeader(status)
}

func (f *fake) wait(w http.ResponseWriter, r *http.Request) {
	for {
		f.mu.Lock()
		ended, running := f.ended, false
		for _, k := range f.containers() {
			running = running || k.ID == r.PathValue("id") && k.Status == "running"
		}
		f.mu.Unlock()
		if !running {
			answer(w, 200, map[string]int{"StatusCode": 0})
			return
		}
		select {
		case <-ended:
		case <-r.Context().Done():
			return
		}
	}
}

func (f *fake) remove(w http.ResponseWriter, _ *http.Request, name string, _ kept) {
	f.drop(name)
	w.WriteHeader(204)
}

// A recording is what a real runtime said of a container of that spec.
type recording struct {
	Spec    json.RawMessage
	Inspect map[string]any
}

func recorded(t *testing.T, flavor, name string) recording {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", flavor, name+".json"))
	if err != nil {
		t.Error(err)
	}
	var r recording
	if err := json.Unmarshal(b, &r); err != nil {
		t.Error(err)
	}
	return r
}
