package repository

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/repository/seedtest"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A site is a server of a machine that is a directory, and the publisher that the
// machine trusts.
type site struct {
	*Server
	t         *testing.T
	l         layout.Layout
	publisher *seedtest.Publisher
	address   string
}

func newSite(t *testing.T, l limits) *site {
	t.Helper()
	m := layout.Layout{Root: t.TempDir()}
	p, err := seedtest.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.TrustedBy(m); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(m.ControllerState(), 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(m.ControllerStore())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	blobs, err := content.Open(m.ControllerContent())
	if err != nil {
		t.Fatal(err)
	}
	s := New(store, blobs, m.ControllerSeed(), func() (*trust.Policy, error) { return trust.Machine(m) }, slog.New(slog.DiscardHandler))
	s.limits = l
	return &site{Server: s, t: t, l: m, publisher: p}
}

// serve serves until what it returns is called.
func (s *site) serve() (stop func()) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	}
	s.t.Cleanup(stop)
	return stop
}

func (s *site) release(architecture string, counter uint64) *seedtest.Release {
	s.t.Helper()
	r, err := s.publisher.Release(architecture, counter)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// sow lays a release down as the seed, as the host does.
func (s *site) sow(r *seedtest.Release) {
	s.t.Helper()
	if err := r.Lay(s.l.ControllerSeed()); err != nil {
		s.t.Fatal(err)
	}
}

// raw sends a request as it is, and returns the answer with its body.
func (s *site) raw(request string) (*http.Response, string) {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		s.t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		s.t.Fatalf("%q: %v", request, err)
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return r, string(b)
}

func (s *site) get(path string) (int, string) {
	s.t.Helper()
	r, body := s.raw("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	return r.StatusCode, body
}

// serves is what it says that it serves, "VERSION ARCHITECTURE FROM" each.
func (s *site) serves() string {
	var out []string
	releases, _ := s.Serves()
	for _, r := range releases {
		out = append(out, fmt.Sprintf("%s %s %s", r.Version, r.Architecture, r.From))
	}
	return strings.Join(out, ", ")
}

func (s *site) wants(when, want string) {
	s.t.Helper()
	if got := s.serves(); got != want {
		_, faults := s.Serves()
		s.t.Errorf("%s: it serves %q, not %q; %q", when, got, want, faults)
	}
}

func TestWhatIsListedIsServed(t *testing.T) {
	s := newSite(t, usual)
	r := s.release("x86_64", 7)
	s.sow(r)
	s.serve()
	s.wants("a seed", "1.0.7 x86_64 seed")
	for name, text := range r.Files {
		if strings.HasPrefix(name, "release.json") {
			continue
		}
		if code, body := s.get("/" + name); code != 200 || body != text {
			t.Errorf("%s: %d %q", name, code, body)
		}
		head, body := s.raw("HEAD /" + name + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if head.StatusCode != 200 || body != "" || head.ContentLength != int64(len(text)) {
			t.Errorf("HEAD of %s: %d, %d bytes", name, head.StatusCode, head.ContentLength)
		}
		part, body := s.raw("GET /" + name + " HTTP/1.1\r\nHost: x\r\nRange: bytes=5-\r\nConnection: close\r\n\r\n")
		if part.StatusCode != 206 || body != text[5:] {
			t.Errorf("the rest of %s: %d %q", name, part.StatusCode, body)
		}
	}
}

// TestT10NothingElseIsServed: not what lies beside it, however it is spelled.
func TestT10NothingElseIsServed(t *testing.T) {
	s := newSite(t, usual)
	s.sow(s.release("x86_64", 7))
	secret := filepath.Join(s.l.ControllerSeed(), "floor/secret")
	if err := os.WriteFile(secret, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.serve()
	s.wants("a seed", "1.0.7 x86_64 seed")
	const db = "/arch/x86_64/nox-mesh.db"
	if code, _ := s.get(db); code != 200 {
		t.Fatal(code)
	}
	for _, path := range []string{
		"/", "/arch", "/arch/", "/arch/x86_64", "/arch/x86_64/", "/floor", "/floor/", "/release.json", "/seed/release.json", "/floor/secret",
		"/floor/../release.json", "/arch/x86_64/../x86_64/nox-mesh.db", "/arch/x86_64/./nox-mesh.db", "/arch//x86_64/nox-mesh.db", "//arch/x86_64/nox-mesh.db",
		"/floor/%2e%2e/release.json", "/floor/..%2frelease.json", "/arch/x86_64/../../../state.db", "/../state.db", "/..%5cstate.db",
		db + "/", db + "%00", db + "%20", db + ".sig.sig", "/ARCH/x86_64/nox-mesh.db", "/arch/aarch64/nox-mesh.db", "/etc/passwd", "/arch/x86_64/nox-mesh.files",
	} {
		if code, body := s.get(path); code != 404 && code != 400 || strings.Contains(body, "secret") && !strings.Contains(path, "secret") || strings.Contains(body, "a secret") {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get"} {
		r, body := s.raw(method + " " + db + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		if r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD" || strings.Contains(body, "1.0.7") {
			t.Errorf("%s: %d %q", method, r.StatusCode, body)
		}
	}
	for _, request := range []string{"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n"} {
		if r, _ := s.raw(request); r.StatusCode != 405 {
			t.Errorf("%q: %d", request, r.StatusCode)
		}
	}
	if r, _ := s.raw("GET " + db + " HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"); r.StatusCode != 431 {
		t.Errorf("a header of 64 KiB: %d", r.StatusCode)
	}
}

// TestWhatIsNotAsListedIsNotServed, nothing of it, and it says why; a seed that is
// put right is served.
func TestWhatIsNotAsListedIsNotServed(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for what, c := range map[string]struct {
		do  func(s *site, seed string) error
		say string
	}{
		"a byte of the tarball is another": {func(s *site, seed string) error {
			return os.WriteFile(filepath.Join(seed, "floor/nox-mesh-host-1.0.7-linux-x86_64.tar.gz"), []byte("floor/nox-mesh-host-1.0.7-linux-x86_64.tar.gz of 1.0.8"), 0o644)
		}, "digest mismatch"},
		"the database is cut": {func(s *site, seed string) error {
			return os.Truncate(filepath.Join(seed, "arch/x86_64/nox-mesh.db"), 3)
		}, "it has 3 bytes"},
		"a file is gone": {func(s *site, seed string) error { return os.Remove(filepath.Join(seed, "arch/x86_64/nox-mesh.gpg")) }, "no such file"},
		"F-02 a symlink to the same": {func(s *site, seed string) error {
			db := filepath.Join(seed, "arch/x86_64/nox-mesh.db")
			if err := os.Rename(db, elsewhere); err != nil {
				return err
			}
			return os.Symlink(elsewhere, db)
		}, "too many levels of symbolic links"},
		"F-02 a directory is a symlink": {func(s *site, seed string) error {
			if err := os.Rename(filepath.Join(seed, "floor"), filepath.Join(seed, "flour")); err != nil {
				return err
			}
			return os.Symlink("flour", filepath.Join(seed, "floor"))
		}, "too many levels of symbolic links"},
		"F-02 the seed is a symlink": {func(s *site, seed string) error {
			if err := os.Rename(seed, seed+"2"); err != nil {
				return err
			}
			return os.Symlink("seed2", seed)
		}, "not a directory"},
		"F-11 a file is a directory": {func(s *site, seed string) error {
			db := filepath.Join(seed, "arch/x86_64/nox-mesh.db")
			if err := os.Remove(db); err != nil {
				return err
			}
			return os.Mkdir(db, 0o755)
		}, "it is no regular file"},
		"the list is another's": {func(s *site, seed string) error {
			p, err := seedtest.New()
			if err != nil {
				return err
			}
			r, err := p.Release("x86_64", 7)
			if err != nil {
				return err
			}
			return r.Lay(seed)
		}, "unknown key"},
		"the list is not signed": {func(s *site, seed string) error {
			return os.Remove(filepath.Join(seed, "release.json.sigstore.json"))
		}, "no such file"},
		"a byte of the list is another": {func(s *site, seed string) error {
			file := filepath.Join(seed, "release.json")
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			return os.WriteFile(file, []byte(strings.Replace(string(b), `"counter":7`, `"counter":8`, 1)), 0o644)
		}, "bad signature"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite(t, usual)
			seed := s.l.ControllerSeed()
			r := s.release("x86_64", 7)
			s.sow(r)
			if err := c.do(s, seed); err != nil {
				t.Fatal(err)
			}
			s.serve()
			s.wants("damaged", "")
			if _, faults := s.Serves(); len(faults) != 1 || !strings.Contains(faults[0].Error(), c.say) {
				t.Errorf("it says %q, not %q", faults, c.say)
			}
			for name := range r.Files {
				if code, _ := s.get("/" + name); code != 404 {
					t.Errorf("%s: %d", name, code)
				}
			}
			if err := os.RemoveAll(seed); err != nil {
				t.Fatal(err)
			}
			s.sow(s.release("x86_64", 7))
			s.wants("put right", "1.0.7 x86_64 seed")
			if _, faults := s.Serves(); len(faults) != 0 {
				t.Errorf("put right: %q", faults)
			}
		})
	}
}
