package wire

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// The bounds of connections. One is young until its first request: it has cost
// nobody anything but us. The machine's own addresses have a lane of their own,
// so that whoever fills the rest cannot keep the first node out.
const (
	maxYoung       = 512
	maxYoungSource = 64
	maxOpen        = 16384
	ownLane        = 64
	// spareFiles are for everything that is not a connection of a node.
	spareFiles = 256
)

// A gate counts connections, and closes those that are too many at once.
type gate struct {
	mu          sync.Mutex
	most        int
	open, young int
	own         int
	of          map[string]int // young ones, by source
}

func newGate() *gate {
	g := &gate{most: maxOpen, of: map[string]int{}}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil && files.Cur < maxOpen+spareFiles {
		g.most = max(int(files.Cur)-spareFiles, int(files.Cur)/2)
	}
	return g
}

// watch puts the gate before a listener.
func (g *gate) watch(l net.Listener) net.Listener { return &watched{l, g} }

type watched struct {
	net.Listener
	gate *gate
}

// Accept returns the next connection there is room for.
func (w *watched) Accept() (net.Conn, error) {
	for {
		c, err := w.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if p := w.gate.enter(c); p != nil {
			return p, nil
		}
		_ = c.Close()
	}
}

// A passed connection is one the gate let in.
type passed struct {
	net.Conn
	gate   *gate
	source string
	own    bool
	young  bool // of gate.mu
	once   sync.Once
}

func (g *gate) enter(c net.Conn) *passed {
	p := &passed{Conn: c, gate: g, source: source(c.RemoteAddr().String()), own: fromHere(c), young: true}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case p.own && g.own < ownLane:
		g.own++
		return p
	case g.open >= g.most || g.young >= maxYoung || g.of[p.source] >= maxYoungSource:
		return nil
	}
	p.own = false
	g.open++
	g.young++
	g.of[p.source]++
	return p
}

// grown says that a connection has come to its first request.
func (p *passed) grown() {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	p.settle()
}

func (p *passed) settle() {
	if !p.young || p.own {
		return
	}
	p.young = false
	p.gate.young--
	if p.gate.of[p.source]--; p.gate.of[p.source] == 0 {
		delete(p.gate.of, p.source)
	}
}

// Close closes the connection and makes room.
func (p *passed) Close() error {
	p.once.Do(func() {
		p.gate.mu.Lock()
		defer p.gate.mu.Unlock()
		if p.own {
			p.gate.own--
			return
		}
		p.settle()
		p.gate.open--
	})
	return p.Conn.Close()
}

// observe is http.Server.ConnState.
func observe(c net.Conn, s http.ConnState) {
	if s == http.StateNew || s == http.StateClosed {
		return
	}
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if p, ok := c.(*passed); ok {
		p.grown()
	}
}

// fromHere says whether a connection is of this machine to itself: the kernel
// gives it the address it is for (RFC 6724, 5, rule 1).
func fromHere(c net.Conn) bool {
	remote, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return false
	}
	local, err := netip.ParseAddrPort(c.LocalAddr().String())
	return remote.Addr().Unmap().IsLoopback() || err == nil && local.Addr() == remote.Addr()
}
