package repository

import (
	"net"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/address"
)

// limits are what one who asks may take.
type limits struct {
	// connections, and of them from one source.
	connections, source int
	// header is the time for a request, idle that between two.
	header, idle time.Duration
	// An answer may take grace, and a second more for each rate of its bytes.
	grace time.Duration
	rate  int64
}

// usual is enough for a rack of machines that fetch at once, and for a link of 128
// kbit/s.
var usual = limits{connections: 128, source: 16, header: 10 * time.Second, idle: 15 * time.Second, grace: 30 * time.Second, rate: 16 << 10}

func (l limits) answer(size int64) time.Duration {
	return l.grace + time.Duration(size/l.rate)*time.Second
}

// A gate counts connections, and closes those that are too many at once.
type gate struct {
	limits
	mu   sync.Mutex
	open int
	of   map[string]int // by source
}

func newGate(l limits) *gate { return &gate{limits: l, of: map[string]int{}} }

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
		source := address.Source(c.RemoteAddr().String())
		if w.gate.enter(source) {
			return &passed{Conn: c, leave: sync.OnceFunc(func() { w.gate.leave(source) })}, nil
		}
		_ = c.Close()
	}
}

func (g *gate) enter(source string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= g.connections || g.of[source] >= g.source {
		return false
	}
	g.open++
	g.of[source]++
	return true
}

func (g *gate) leave(source string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.of[source]--; g.of[source] == 0 {
		delete(g.of, source)
	}
}

// A passed connection is one the gate let in.
type passed struct {
	net.Conn
	leave func()
}

// Close closes the connection and makes room.
func (p *passed) Close() error {
	p.leave()
	return p.Conn.Close()
}
