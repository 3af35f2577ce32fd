package enrol

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/lab/fleet"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func enrol(t *testing.T, h *fleet.Host, token link.Token) string {
	t.Helper()
	out, err := h.Ask(t.Context(), token.Text(), "enrol", "-")
	must(t, err)
	return out
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// whole enrols a host, declares something for it, and returns when it has it and
// has said so: all that a node does with its control plane.
func (s *site) whole(h *fleet.Host, name string) {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Join(h.Root, "srv"), 0o755))
	must(s.t, h.Start(s.t.Context()))
	enrol(s.t, h, s.token(1, "--name", name))
	text := "for " + name + "\n"
	must(s.t, s.plane.Declare(s.t.Context(), name, text, "node="+name))
	s.reached(h, name, filepath.Join(h.Root, "srv", name), text)
}

// reached returns when a file of a host holds that text, and the control plane
// knows that the node has applied what it shall.
func (s *site) reached(h *fleet.Host, name, file, text string) {
	s.t.Helper()
	var known fleet.Known
	for end := time.Now().Add(soon); ; {
		got, _ := os.ReadFile(file)
		for _, n := range s.nodes() {
			if n.Name == name {
				known = n
			}
		}
		if string(got) == text && known.Connected && known.Wanted > 0 && known.Applied == known.Wanted {
			return
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(h.Log())
			s.t.Fatalf("the node is %+v and %s has %q\n%s", known, file, got, log)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestE18WaysToTheControlPlane(t *testing.T) {
	t.Run("E-18 HTTP/1.1 only", func(t *testing.T) {
		s := raise(t, "", "", "GODEBUG=http2server=0")
		if got := protocol(t, s); got != "http/1.1" {
			t.Fatalf("the control plane speaks %q", got)
		}
		s.whole(s.host(), "old")
	})
	t.Run("E-18 IPv6 only", func(t *testing.T) {
		fleet.Require(t)
		must(t, fleet.WithoutIPv4())
		defer func() { must(t, fleet.WithIPv4()) }()
		if c, err := net.Dial("tcp4", fleet.Address); err == nil || !contains(err.Error(), "unreachable") {
			t.Fatalf("there is IPv4: %v %v", c, err)
		}
		s := raise(t, "[::]:7443", fleet.Address6)
		s.whole(s.host(), "six")
	})
	t.Run("E-18 a CONNECT proxy", func(t *testing.T) {
		s := raise(t, "", "")
		through, connects := proxy(t)
		s.whole(s.host("HTTPS_PROXY=http://"+through), "inside")
		if connects.Load() < 2 {
			t.Errorf("the proxy was asked %d times: the host went past it", connects.Load())
		}
	})
}

// protocol is what the control plane agrees to with somebody who speaks both.
func protocol(t *testing.T, s *site) string {
	t.Helper()
	token := s.token(1)
	n, err := fleet.New(token, 3)
	must(t, err)
	p, err := n.Protocol(t.Context())
	must(t, err)
	return p
}

// proxy is a proxy that connects and does nothing else (RFC 9110, 9.3.6).
func proxy(t *testing.T) (address string, connects *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(fleet.Source(1).String(), "0"))
	must(t, err)
	connects = new(atomic.Int64)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
			return
		}
		connects.Add(1)
		to, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer to.Close()
		from, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer from.Close()
		fmt.Fprint(from, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() {
			_, _ = io.Copy(to, buffered)
			to.Close()
		}()
		_, _ = io.Copy(from, to)
	})}
	go srv.Serve(l) //nolint:errcheck // it is closed by Close
	t.Cleanup(func() { srv.Close() })
	return l.Addr().String(), connects
}

// TestE10ClocksThatAreWrong: hosts whose clock is decades or years off enrol,
// hold their link and report. Their clock is that of the program with another
// door to the time (internal/clock): the machine's own is not touched.
func TestE10ClocksThatAreWrong(t *testing.T) {
	fleet.Require(t)
	off := filepath.Join(t.TempDir(), "bin")
	must(t, compile(off, "-overlay", clockOverlay(t)))
	s := raise(t, "", "")
	s.bin = off
	const year = 365 * 24 * time.Hour
	for name, shift := range map[string]time.Duration{
		"y1970": -time.Since(time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)), "ahead": 2 * year, "behind": -2 * year,
	} {
		h := s.host("NOX_LAB_CLOCK=" + shift.String())
		s.whole(h, name)
		log, err := os.ReadFile(h.Log())
		must(t, err)
		if !bytes.Contains(log, []byte("the clock of this machine is not the control plane's")) {
			t.Errorf("%s: the host does not notice: is its clock wrong?\n%s", name, log)
		}
		shown, err := s.plane.Ask(t.Context(), "show", name, "--json")
		must(t, err)
		want := time.Now().Add(shift).UTC().Format(`"started": "2006-`)
		if !contains(shown, want) {
			t.Errorf("%s: its reports have no %s\n%s", name, want, shown)
		}
	}
}

// clockOverlay replaces the clock's door by one that NOX_LAB_CLOCK shifts.
func clockOverlay(t *testing.T) string {
	t.Helper()
	const door = "../../internal/clock/clock.go"
	b, err := os.ReadFile(door)
	must(t, err)
	const was = "return time.Now() }"
	if bytes.Count(b, []byte(was)) != 1 {
		t.Fatalf("the door to the clock is not as this test knows it")
	}
	b = bytes.Replace(b, []byte(was), []byte("return time.Now().Add(shift) }"), 1)
	b = bytes.Replace(b, []byte("import (\n"), []byte("import (\n\t\"os\"\n"), 1)
	b = append(b, "\nvar shift, _ = time.ParseDuration(os.Getenv(\"NOX_LAB_CLOCK\"))\n"...)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "clock.go"), b, 0o644))
	real, err := filepath.Abs(door)
	must(t, err)
	overlay := filepath.Join(dir, "overlay.json")
	must(t, os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, real, filepath.Join(dir, "clock.go")), 0o644))
	return overlay
}
