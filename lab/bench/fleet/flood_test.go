package fleet

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/fleet"
)

// TestL05AFloodInHalfAGibibyte: twenty thousand strangers connect, most from
// addresses of their own; some say nothing, some shake hands and say nothing
// more, some say what is no TLS. The service stays within its memory, the links
// that stand stay, and nodes that are known get in: that of its own machine, and
// one from elsewhere.
func TestL05AFloodInHalfAGibibyte(t *testing.T) {
	memory := int64(512 << 20)
	if !fleet.CanLimit() {
		memory = 0
	}
	r := begin(t, memory)
	r.burst = 20
	r.enrolAtOnce()
	r.allUp(time.Minute)
	later := r.make(r.token(2), 100, 2)
	later[1].Source = netip.MustParseAddr(fleet.Here)
	for _, n := range later {
		_, err := n.Join(r.within(time.Minute))
		must(t, err)
	}
	bare := r.usage()

	ctx, end := context.WithCancel(t.Context())
	defer end()
	const attempts, at = 20_000, 128
	// More than the gate lets in are held, and fewer than this process may open.
	held := make(chan net.Conn, 8000)
	defer func() {
		for len(held) > 0 {
			(<-held).Close()
		}
	}()
	hold := func(c net.Conn) {
		for {
			select {
			case held <- c:
				return
			default:
			}
			select {
			case old := <-held:
				old.Close()
			default:
			}
		}
	}
	var next, refused, silent, shaken, other atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range at {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1))
				if i > attempts {
					return
				}
				d := net.Dialer{Timeout: 10 * time.Second}
				d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(fleet.Source(100_000+i), 0))
				c, err := d.DialContext(ctx, "tcp", r.plane.Address)
				if err != nil {
					refused.Add(1)
					continue
				}
				_ = c.SetDeadline(time.Now().Add(5 * time.Second))
				switch i % 3 {
				case 0:
					silent.Add(1)
				case 1:
					// Anybody may shake hands: who may do what is asked later.
					if s := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}); s.HandshakeContext(ctx) == nil {
						shaken.Add(1)
					} else {
						refused.Add(1)
					}
				case 2:
					other.Add(1)
					_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: controller\r\n\r\n"))
				}
				hold(c)
			}
		})
	}
	// They get in while the others knock.
	known := func(n *fleet.Node) (tries int, took time.Duration) {
		at := time.Now()
		tries, err := n.Join(r.within(3 * time.Minute))
		must(t, err)
		return tries, time.Since(at)
	}
	ownTries, own := known(later[1])
	wg.Wait()
	flooded := time.Since(began)
	elseTries, elsewhere := known(later[0])
	if !r.plane.Alive() {
		t.Fatalf("the control plane is gone; see %s", r.plane.Log())
	}
	u := r.usage()
	r.row("20,000 strangers connect, in 512 MiB", "lives, RSS bounded", "in %s; refused %d, silent %d, handshakes %d, no TLS %d; RSS %s, peak %s, bare %s; %d descriptors", round(flooded),
		refused.Load(), silent.Load(), shaken.Load(), other.Load(), mib(u.RSS), mib(u.Peak), mib(bare.RSS), u.Descriptors)
	r.row("a known node gets in", "", "own machine %s (%d tries), elsewhere %s (%d tries)", round(own), ownTries, round(elsewhere), elseTries)
	for _, row := range r.rows {
		t.Logf("%-52s %s", row[0], row[2])
	}
	if lost := r.crowd.Downs(); lost > 0 {
		t.Errorf("%d links were lost", lost)
	}
	if u.Peak > 512<<20 {
		t.Errorf("it took %s", mib(u.Peak))
	}
}
