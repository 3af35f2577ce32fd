package repository

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func (s *site) dial() net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// closed wants the other side to close, after at most what it wrote before.
func closed(t *testing.T, what string, c net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("%s: the connection is open", what)
	}
}

// TestWhoTakesTimeIsClosed: for the request, between two, and for the answer.
func TestWhoTakesTimeIsClosed(t *testing.T) {
	quick := limits{connections: 8, source: 8, header: 200 * time.Millisecond, idle: 200 * time.Millisecond, grace: 300 * time.Millisecond, rate: 1 << 30}
	s := newSite(t, quick)
	r := s.release("x86_64", 7)
	const tarball = "floor/nox-mesh-host-1.0.7-linux-x86_64.tar.gz"
	r.Files[tarball] = strings.Repeat("x", 16<<20) // more than sockets hold
	if err := r.Sign(); err != nil {
		t.Fatal(err)
	}
	s.sow(r)
	s.serve()
	s.wants("a seed", "1.0.7 x86_64 seed")

	silent, half := s.dial(), s.dial()
	_, _ = io.WriteString(half, "GET / HTTP/1.1\r\nHost:")
	body := s.dial()
	_, _ = io.WriteString(body, "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
	idle := s.dial()
	_, _ = io.WriteString(idle, "GET /arch/x86_64/nox-mesh.db HTTP/1.1\r\nHost: x\r\n\r\n")
	closed(t, "one that says nothing", silent)
	closed(t, "half a request", half)
	closed(t, "a body that does not come", body)
	closed(t, "one that asks no more", idle)

	slow := s.dial()
	_, _ = io.WriteString(slow, "GET /"+tarball+" HTTP/1.1\r\nHost: x\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil || answer.StatusCode != 200 {
		t.Fatal(answer, err)
	}
	late, tick := time.After(20*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for s.answering() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("one that reads nothing is waited for")
		}
	}
	if n, err := io.Copy(io.Discard, answer.Body); err == nil || n == 16<<20 {
		t.Errorf("one that read nothing in time got all %d bytes", n)
	}
}

// answering reports whether somebody is in the middle of an answer.
func (s *site) answering() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shelves["x86_64"].users > 1
}

// TestASourceHasItsShare, and all have theirs; one who leaves makes room.
func TestASourceHasItsShare(t *testing.T) {
	few := usual
	few.connections, few.source = 3, 2
	s := newSite(t, few)
	s.sow(s.release("x86_64", 7))
	s.serve()
	ask := func(c net.Conn) bool {
		_, _ = io.WriteString(c, "HEAD /arch/x86_64/nox-mesh.db HTTP/1.1\r\nHost: x\r\n\r\n")
		r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: "HEAD"})
		return err == nil && r.StatusCode == 200
	}
	first, second := s.dial(), s.dial()
	if !ask(first) || !ask(second) {
		t.Fatal("two are not answered")
	}
	if ask(s.dial()) {
		t.Error("a third of the same source is answered")
	}
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	from2, err := other.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer from2.Close()
	_ = from2.SetDeadline(time.Now().Add(20 * time.Second))
	if !ask(from2) {
		t.Error("another source is not answered")
	}
	third := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	from3, err := third.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer from3.Close()
	_ = from3.SetDeadline(time.Now().Add(20 * time.Second))
	if ask(from3) {
		t.Error("a fourth in all is answered")
	}
	first.Close()
	for end := time.Now().Add(20 * time.Second); !ask(s.dial()); {
		if time.Now().After(end) {
			t.Fatal("who left made no room")
		}
	}
}
