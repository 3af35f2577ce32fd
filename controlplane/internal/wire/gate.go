package wire

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/address"
	"github.com/nox-mesh/nox-mesh/internal/cgroup"
)

// The bounds of connections. One is young until it asked as a known node: until
// then it has a share by its source, and no longer to live than youngLife,
// whatever it asks. All of the machine's own addresses are one source, which has
// a lane of its own besides, so that whoever fills the rest cannot keep the
// first node out. Of the lane ownYoung are for young ones, the rest is kept for
// known nodes.
const (
	maxYoung       = 512
	maxYoungSource = 64
	maxOpen        = 16384
	ownLane        = 64
	ownYoung       = 48
	// youngLife is enough for an enrolment; one that is pending polls anew.
	youngLife = 2 * time.Minute
	// spareFiles are for everything that is not a connection of a node.
	spareFiles = 256
	// linkMemory is what a link is reckoned with, of three quarters of the memory
	// there is.
	linkMemory = 64 << 10
)

// here is the source that the machine's own addresses are.
const here = "here"

// A gate counts connections, and closes those that are too many at once.
type gate struct {
	mu          sync.Mutex
	most        int
	life        time.Duration
	open, young int            // outside of the own lane
	of          map[string]int // young ones, by source
	own         int            // in the own lane
	ownYoung    list.List      // young ones in it, the oldest first
}

func newGate() *gate {
	g := &gate{most: maxOpen, life: youngLife, of: map[string]int{}}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil && files.Cur < maxOpen+spareFiles {
		g.most = max(int(files.Cur)-spareFiles, int(files.Cur)/2)
	}
	if memory, limited := cgroup.Memory(); limited {
		g.most = min(g.most, max(maxYoung, int(memory/4*3/linkMemory)))
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
	// Of gate.mu: in is its place among the young of the own lane.
	own, young, gone bool
	in               *list.Element
	life             *time.Timer
}

// enter lets a connection in, nil when there is no room. One of the machine's
// own takes the place of the oldest young one in the lane before it is kept out:
// a node asks as soon as it is connected, those who hold places do not.
func (g *gate) enter(c net.Conn) *passed {
	p := &passed{Conn: c, gate: g, source: address.Source(c.RemoteAddr().String()), young: true}
	if fromHere(c) {
		p.source = here
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	room := g.open < g.most && g.young < maxYoung && g.of[p.source] < maxYoungSource
	switch {
	case p.source == here && g.own < ownLane && g.ownYoung.Len() < ownYoung:
		g.enterOwn(p)
	case room:
		g.open++
		g.young++
		g.of[p.source]++
	case p.source == here && g.ownYoung.Len() > 0:
		oldest := g.ownYoung.Front().Value.(*passed)
		g.leave(oldest)
		_ = oldest.Conn.Close()
		g.enterOwn(p)
	default:
		return nil
	}
	p.life = time.AfterFunc(g.life, p.expire)
	return p
}

func (g *gate) enterOwn(p *passed) {
	p.own = true
	p.in = g.ownYoung.PushBack(p)
	g.own++
}

// grown says that a known node asked over the connection.
func (p *passed) grown() {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if !p.gone {
		p.gate.settle(p)
	}
}

// settle makes a connection young no more; gate.mu is held.
func (g *gate) settle(p *passed) {
	if !p.young {
		return
	}
	p.young = false
	p.life.Stop()
	if p.own {
		g.ownYoung.Remove(p.in)
		return
	}
	g.young--
	if g.of[p.source]--; g.of[p.source] == 0 {
		delete(g.of, p.source)
	}
}

// leave makes room; gate.mu is held.
func (g *gate) leave(p *passed) {
	if p.gone {
		return
	}
	g.settle(p)
	p.gone = true
	if p.own {
		g.own--
	} else {
		g.open--
	}
}

// expire closes a connection that is still young at the end of its life.
func (p *passed) expire() {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.young {
		p.gate.leave(p)
		_ = p.Conn.Close()
	}
}

// Close closes the connection and makes room.
func (p *passed) Close() error {
	p.gate.mu.Lock()
	p.gate.leave(p)
	p.gate.mu.Unlock()
	return p.Conn.Close()
}

// passedKey is where a request's context has its passed connection.
type passedKey struct{}

// remember is http.Server.ConnContext.
func remember(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, passedKey{}, c)
}

// known says that a request was made as a node that is known.
func known(r *http.Request) {
	if p, ok := r.Context().Value(passedKey{}).(*passed); ok {
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
