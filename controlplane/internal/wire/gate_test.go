package wire

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
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
	const at = "192.0.2.1:7443"
	from := func(n byte, want bool) *passed {
		t.Helper()
		p := g.enter(named{nil, net.IPv4(198, 51, 100, n).String() + ":1", at})
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
		p := g.enter(named{nil, own, at})
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

func TestTheMachinesOwnAddressesAreOneSource(t *testing.T) {
	g := newGate()
	enter := func(i int) *passed {
		return g.enter(named{nil, net.IPv4(127, 0, byte(i>>8), byte(i)).String() + ":1", "127.0.0.1:7443"})
	}
	var in []*passed
	for i := range ownYoung + maxYoungSource {
		p := enter(i)
		if p == nil {
			t.Fatalf("connection %d is kept out", i)
		}
		in = append(in, p)
	}
	if g.own != ownYoung || g.of[here] != maxYoungSource || len(g.of) != 1 {
		t.Fatalf("%d in the lane, %v outside", g.own, g.of)
	}
	// Whoever holds all places gives way to one who comes, and one who asked as
	// a node does not.
	in[0].grown()
	for i := range 3 * ownLane {
		p := enter(i)
		if p == nil {
			t.Fatalf("connection %d finds every place taken", i)
		}
		in = append(in, p)
	}
	if in[0].gone || !in[1].gone || g.own != ownYoung+1 || g.of[here] != maxYoungSource {
		t.Errorf("known gone %v, oldest gone %v, %d in the lane, %v outside", in[0].gone, in[1].gone, g.own, g.of)
	}
	for _, p := range in {
		p.Close()
	}
	if g.own != 0 || g.ownYoung.Len() != 0 || g.open != 0 || g.young != 0 || len(g.of) != 0 {
		t.Errorf("all are gone: %+v", g)
	}
}

func TestOnlyAKnownNodesConnectionGrows(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t)
		k := p.token(admission.TokenOptions{})
		n, _ := p.host(k, "stranger")
		known := p.node("a")
		n.HTTP1, known.HTTP1 = http1, http1
		lane := func() (own, young int) {
			p.gate.mu.Lock()
			defer p.gate.mu.Unlock()
			return p.gate.own, p.gate.ownYoung.Len()
		}
		await(t, func() bool { own, _ := lane(); return own == 0 })
		c, err := n.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, path := range []string{"/nothing", link.PathHello, link.PathReports} {
			res, err := c.Do(t.Context(), http.MethodPost, path, []byte("{}"), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		if own, young := lane(); own != 1 || young != 1 {
			t.Errorf("a stranger that asked: %d open, %d young", own, young)
		}
		s := p.open(known)
		defer s.Close()
		p.await(s, link.MessageHeartbeat)
		if own, young := lane(); own != 2 || young != 1 {
			t.Errorf("and a node: %d open, %d young", own, young)
		}
	})
}

func TestAStrangersConnectionEndsAndANodesDoesNot(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t)
		n, _ := p.host(p.token(admission.TokenOptions{}), "stranger")
		known := p.node("a")
		n.HTTP1, known.HTTP1 = http1, http1
		p.gate.mu.Lock()
		p.gate.life = 2 * time.Second
		p.gate.mu.Unlock()
		s := p.open(known)
		defer s.Close()
		p.await(s, link.MessageHeartbeat)
		c, err := n.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// The link's connection is older, and would have ended first; one that is
		// only silent ends later.
		began := time.Now()
		_, _ = io.Copy(io.Discard, c.TLS)
		if took := time.Since(began); took >= headerTimeout {
			t.Errorf("the stranger stayed for %v", took)
		}
		p.gate.mu.Lock()
		own, young := p.gate.own, p.gate.ownYoung.Len()
		p.gate.mu.Unlock()
		if own != 1 || young != 0 || !p.Links.Connected(known.ID) {
			t.Errorf("%d open, %d young, link %v", own, young, p.Links.Connected(known.ID))
		}
	})
}

func TestANodesConnectionIsYoungNoMore(t *testing.T) {
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
