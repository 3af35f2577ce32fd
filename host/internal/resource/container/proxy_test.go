package container

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A proxy stands between the kind and a runtime: it counts the calls, and cuts
// the line at one of them, as a host is cut off that is killed there.
type proxy struct {
	socket, to string

	mu    sync.Mutex
	calls []string
	// cutAt is the number of the call, from 1, at which the line is cut: before
	// the runtime hears of it, or, with after, when it has done it. 0 is never.
	cutAt int
	after bool
	// only counts calls that change something.
	only bool
	seen int
	cut  bool
}

var versioned = regexp.MustCompile(`^/v1\.[0-9]+`)

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	p := &proxy{socket: filepath.Join(shortDir(t), "p.sock"), to: to}
	l, err := net.Listen("unix", p.socket)
	must(t, err)
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer c.Close()
				p.serve(c)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wait.Wait() })
	return p
}

func (p *proxy) serve(c net.Conn) {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	call := req.Method + " " + versioned.ReplaceAllString(req.URL.Path, "")
	before, after := p.decide(call, req.Method != http.MethodGet)
	if before {
		return
	}
	up, err := net.Dial("unix", p.to)
	if err != nil {
		return
	}
	defer up.Close()
	_ = req.Write(up) // one that refuses early does not read it all, and answers
	// Who asked may go before the answer comes.
	var left sync.WaitGroup
	left.Go(func() {
		_, _ = io.Copy(io.Discard, c)
		up.Close()
	})
	defer left.Wait()
	defer c.Close()
	if after {
		_, _ = io.Copy(io.Discard, up) // to its end: it was done
		return
	}
	_, _ = io.Copy(c, up)
}

func (p *proxy) decide(call string, changes bool) (before, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call)
	if p.cut {
		return true, false
	}
	if p.only && !changes {
		return false, false
	}
	p.seen++
	if p.cutAt == 0 || p.seen != p.cutAt {
		return false, false
	}
	p.cut = true
	return !p.after, p.after
}

// begin forgets what was and says where to cut next.
func (p *proxy) begin(cutAt int, after, only bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.seen, p.cut, p.cutAt, p.after, p.only = nil, 0, false, cutAt, after, only
}

// heard are the calls so far.
func (p *proxy) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

func (p *proxy) wasCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

// changes are the calls that changed something.
func (p *proxy) changes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, c := range p.calls {
		if !strings.HasPrefix(c, "GET ") {
			out = append(out, c)
		}
	}
	return out
}

func isUnreachable(err error) bool { return errors.As(err, new(*unreachable)) }
