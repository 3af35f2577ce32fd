package wire

import (
	"net"
	"net/http"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// named is a connection whose ends are said to be at these addresses.
type named struct {
	net.Conn
	remote, local string
}

func (n named) RemoteAddr() net.Addr { a, _ := net.ResolveTCPAddr("tcp", n.remote); return a }
func (n named) LocalAddr() net.Addr  { a, _ := net.ResolveTCPAddr("tcp", n.local); return a }
func (named) Close() error           { return nil }

func TestTheGateKeepsRoom(t *testing.T) {
	g := newGate()
	g.most = maxYoung + 10
	const here = "192.0.2.1:7443"
	from := func(n byte, want bool) *passed {
		t.Helper()
		p := g.enter(named{nil, net.IPv4(198, 51, 100, n).String() + ":1", here})
		if (p != nil) != want {
			t.Fatalf("from %d: let in %v; %d open, %d young", n, p != nil, g.open, g.young)
		}
		return p
	}
	var in []*passed
	for n := range byte(maxYoung / maxYoungSource) {
		for range maxYoungSource {
			in = append(in, from(n, true))
		}
		if int(n) == 0 {
			from(0, false) // one source has its share, the others theirs
		}
	}
	from(200, false) // as many young ones as there may be
	for _, own := range []string{"192.0.2.1:5", "127.0.0.1:5"} {
		p := g.enter(named{nil, own, here})
		if p == nil {
			t.Fatalf("%s is kept out", own)
		}
		defer p.Close()
	}
	for _, p := range in {
		p.grown()
		p.grown()
	}
	for range 10 {
		in = append(in, from(200, true))
	}
	from(201, false) // as many as there may be
	for _, p := range in {
		p.Close()
		p.Close()
	}
	if g.open != 0 || g.young != 0 || len(g.of) != 0 || g.own != 2 {
		t.Errorf("all are gone: %+v", g)
	}
}

func TestAConnectionThatAskedIsYoungNoMore(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t)
		n := p.node("a")
		n.HTTP1 = http1
		// As if they came from elsewhere: the own lane is full.
		p.gate.mu.Lock()
		p.gate.own += ownLane
		p.gate.mu.Unlock()
		s := p.open(n)
		p.await(s, link.MessageHeartbeat)
		p.gate.mu.Lock()
		open, young := p.gate.open, p.gate.young
		p.gate.mu.Unlock()
		if open != 1 || young != 0 {
			t.Errorf("%d open, %d young", open, young)
		}
		p.gate.mu.Lock()
		p.gate.most = 1
		p.gate.mu.Unlock()
		if status, _, err := n.Get(t.Context(), link.PathContent+"x", nil); err == nil || status == http.StatusOK {
			t.Errorf("one too many is answered: %d", status)
		}
		s.Close()
		await(t, func() bool { p.gate.mu.Lock(); defer p.gate.mu.Unlock(); return p.gate.open == 0 })
	})
}
