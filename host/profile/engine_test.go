package profile

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// runtimeAt answers whoever calls at a socket with text, and hangs up; with no
// text it says nothing and holds the line.
func runtimeAt(t *testing.T, socket, text string) {
	t.Helper()
	runtimeSaying(t, socket, func() string { return text })
}

func runtimeSaying(t *testing.T, socket string, says func() string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close() // at the end: a silent one holds the line
			_, _ = conn.Read(make([]byte, 4096))
			text := says()
			if text == "" {
				continue
			}
			_, _ = io.WriteString(conn, text)
			conn.Close()
		}
	}()
}

func short(t *testing.T) layout.Layout {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") // the 107 bytes of a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return layout.Layout{Root: dir}
}

func TestTheRuntimeSaysItsVersionOrWhyNot(t *testing.T) {
	ok := func(server string) string {
		return "HTTP/1.1 200 OK\r\nServer: " + server + "\r\nApi-Version: 1.41\r\nContent-Length: 2\r\n\r\nOK"
	}
	for name, c := range map[string]struct{ answer, version, why string }{
		"podman":         {ok("Libpod/4.3.1 (linux)"), "4.3.1", ""},
		"docker":         {ok("Docker/28.2.2 (linux)"), "28.2.2", ""},
		"no version":     {ok("Docker"), "", "it names no version"},
		"hostile":        {ok("Libpod/1\u009b2J (linux)"), "", "it names no version"},
		"another server": {ok("nginx/1.22.1"), "", "it names no version"},
		"no runtime":     {"SSH-2.0-OpenSSH_9.2\r\n", "", "it does not answer as a runtime does"},
		"an error":       {"HTTP/1.1 503 Service Unavailable\r\n\r\n", "", "status 503"},
		"without an end": {"HTTP/1.1 200 OK\r\nServer: " + strings.Repeat("9", 1<<20), "", "it does not answer as a runtime does"},
		"silent":         {"", "", "it did not answer within 5 s"},
	} {
		t.Run(name, func(t *testing.T) {
			l := short(t)
			runtimeAt(t, l.Path("/run/podman/podman.sock"), c.answer)
			f := fact{"runtime_version", far, func(ctx context.Context, s source) (finding, error) {
				limit := far
				if c.answer == "" {
					limit = 30 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(ctx, limit)
				defer cancel()
				version, err := s.engineVersion(ctx)
				return func(_ *Profile, i *Inventory) { i.RuntimeVersion = version }, err
			}}
			p, inv := quiet(l).find(t.Context(), runs, []fact{f})
			why := inv.Unknown["runtime_version"]
			if p.Runtime != "podman" || inv.RuntimeVersion != c.version || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("%q %q: %q", p.Runtime, inv.RuntimeVersion, why)
			}
		})
	}
}

// TestARuntimeIsNotWokenEachTime: but an hour later, and when its program or its
// socket is another, it is asked again.
func TestARuntimeIsNotWokenEachTime(t *testing.T) {
	const says = "HTTP/1.1 200 OK\r\nServer: Libpod/%s (linux)\r\n\r\n"
	l := short(t)
	s := quiet(l)
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	asks := func(at time.Time, want string) {
		t.Helper()
		s.asked.clock = clock.At(at)
		if got, err := s.engineVersion(t.Context()); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	socket := l.Path("/run/podman/podman.sock")
	answer := "1"
	runtimeSaying(t, socket, func() string { return fmt.Sprintf(says, answer) })
	asks(noon, "1")
	answer = "2"
	asks(noon.Add(59*time.Minute), "1")
	asks(noon.Add(61*time.Minute), "2")
	answer = "3"
	if err := os.MkdirAll(l.Path("/usr/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.Path("/usr/bin/podman"), []byte("new"), 0o755); err != nil {
		t.Fatal(err)
	}
	asks(noon.Add(62*time.Minute), "3")
	if err := os.Rename(socket, socket+".old"); err != nil {
		t.Fatal(err)
	}
	runtimeAt(t, socket, fmt.Sprintf(says, "4"))
	asks(noon.Add(63*time.Minute), "4")
}

func TestTheRuntimeIsTheOneContainersRunOn(t *testing.T) {
	l := short(t)
	podman, docker := l.Path("/run/podman/podman.sock"), l.Path("/run/docker.sock")
	is := func(when, runtime, up, down string) {
		t.Helper()
		names := func(all []Engine) string {
			var out []string
			for _, e := range all {
				out = append(out, e.Name)
			}
			return strings.Join(out, " ")
		}
		u, d, err := Engines(l)
		if names(u) != up || names(d) != down || err != nil {
			t.Errorf("%s: %q are up and %q down, %v", when, names(u), names(d), err)
		}
		if p, inv := quiet(l).find(t.Context(), runs); p.Runtime != runtime || inv.Unknown["runtime"] != "" {
			t.Errorf("%s: %q, %v", when, p.Runtime, inv.Unknown)
		}
	}
	is("none", "", "", "")
	// What docker makes when it is to hand on a socket that is not there.
	must(t, os.MkdirAll(podman, 0o755))
	is("a folder in the socket's place", "", "", "")
	must(t, os.MkdirAll(l.Path("/usr/bin"), 0o755))
	must(t, os.WriteFile(l.Path("/usr/bin/podman"), nil, 0o755))
	is("a program", "podman", "", "podman")
	must(t, os.WriteFile(l.Path("/usr/bin/dockerd"), nil, 0o755))
	is("two programs", "podman", "", "podman docker")
	runtimeAt(t, docker, "")
	is("the one that has a socket", "docker", "docker", "podman")
	must(t, os.Remove(podman))
	runtimeAt(t, podman, "")
	is("both", "podman", "podman docker", "")
	must(t, os.Remove(docker))
	must(t, os.Remove(l.Path("/usr/bin/dockerd")))
	must(t, os.Symlink(podman, docker))
	is("podman-docker's link", "podman", "podman", "")
}

// TestARuntimeNobodyMayLookAtIsNotOneThatIsDown: /run/podman may be root's alone.
func TestARuntimeNobodyMayLookAtIsNotOneThatIsDown(t *testing.T) {
	l := tree(t, map[string]string{"/usr/bin/podman": "", "/run/podman/": ""})
	// A link to itself cannot be read, by root neither.
	socket := l.Path("/run/podman/podman.sock")
	must(t, os.Symlink(socket, socket))
	p, inv := quiet(l).find(t.Context(), runs, has)
	if p.Runtime != "podman" {
		t.Errorf("%q", p.Runtime)
	}
	for _, name := range []string{"runtime", "runtime_version"} {
		if why := inv.Unknown[name]; !strings.Contains(why, "too many levels of symbolic links") {
			t.Errorf("%s: %q", name, why)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestARuntimeThatIsDownIsSaidSo(t *testing.T) {
	l := short(t)
	runtimeAt(t, l.Path("/run/docker.sock"), "")
	// Its socket outlives one that was killed.
	left := l.Path("/run/podman/podman.sock")
	if err := os.MkdirAll(filepath.Dir(left), 0o755); err != nil {
		t.Fatal(err)
	}
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	_, err = quiet(l).engineVersion(t.Context())
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
}
