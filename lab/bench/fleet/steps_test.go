package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/fleet"
)

// enrolAtOnce enrols the burst with one token, all at the same moment, and lets
// them hold their links.
func (r *run) enrolAtOnce() {
	r.Helper()
	ns := r.make(r.token(r.burst), 0, r.burst)
	var tries atomic.Int64
	before, began := r.usage(), time.Now()
	took, err := fleet.Each(ns, len(ns), func(n *fleet.Node) error {
		k, err := n.Join(r.within(5 * time.Minute))
		tries.Add(int64(k))
		return err
	})
	must(r, err)
	all := time.Since(began)
	r.row(fmt.Sprintf("%d enrol at once, one token", r.burst), "none refused, p99 < 30 s", "%s; %.0f/s; %.1f tries each; cpu %s", spread(took),
		float64(r.burst)/all.Seconds(), float64(tries.Load())/float64(r.burst), round(r.usage().CPU-before.CPU))
	known := r.known()
	for _, n := range ns {
		if known[n.ID].State != "enrolled" {
			r.Fatalf("%s is %q", n.Hostname, known[n.ID].State)
		}
	}
	if len(known) != r.burst {
		r.Fatalf("%d machines became %d nodes", r.burst, len(known))
	}
	r.crowd.Stay(ns...)
}

// floor is how many handshakes two ends on this machine make with each other, both
// with a certificate, and nothing else: an enrolment is two of them, a link one.
func (r *run) floor() {
	r.Helper()
	const count = 1000
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(r, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(r, err)
	cfg := &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, ClientAuth: tls.RequestClientCert,
		InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
	}
	l, err := tls.Listen("tcp", net.JoinHostPort(fleet.Here, "0"), cfg)
	must(r, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	began := time.Now()
	_, err = fleet.Each(make([]*fleet.Node, count), 48, func(*fleet.Node) error {
		c, err := tls.Dial("tcp", l.Addr().String(), cfg)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err = c.Write([]byte{1}); err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		return err
	})
	must(r, err)
	r.row("the floor: handshakes, both ends on this machine", "", "%.0f/s", count/time.Since(began).Seconds())
}

// enrolRest enrols more, many over one connection, so that they are there soon.
func (r *run) enrolRest(count int) {
	r.Helper()
	if count <= 0 {
		return
	}
	ns := r.make(r.token(count), len(r.crowd.Nodes), count)
	for some := range slices.Chunk(ns, 400) {
		must(r, fleet.EnrolTogether(r.Context(), some, 24))
	}
	r.crowd.Stay(ns...)
}

// enrolFlow enrols the rest as fast as it goes, without a crowd at the door.
func (r *run) enrolFlow(count int) {
	r.Helper()
	ns := r.make(r.token(count), r.burst, count)
	before, began := r.usage(), time.Now()
	took, err := fleet.Each(ns, 48, func(n *fleet.Node) error {
		_, err := n.Join(r.within(10 * time.Minute))
		return err
	})
	must(r, err)
	all := time.Since(began)
	r.row(fmt.Sprintf("%d enrol, 48 at a time", count), ">= 300/s", "%.0f/s; %s; cpu %s", float64(count)/all.Seconds(), spread(took),
		round(r.usage().CPU-before.CPU))
	r.crowd.Stay(ns...)
}

// hold measures what the links take while nobody says anything.
func (r *run) hold(bare fleet.Usage, idle time.Duration) {
	r.Helper()
	began := time.Now()
	r.allUp(10 * time.Minute)
	n := len(r.crowd.Nodes)
	r.row(fmt.Sprintf("%d links come up", n), "", "%s", round(time.Since(began)))
	if idle == 0 {
		return
	}
	before := r.usage()
	must(r, r.crowd.Await(idle+time.Hour, "", after(idle)))
	u := r.usage()
	each := func(a, b int64) string { return fmt.Sprintf("%.1f KiB", float64(a-b)/1024/float64(n)) }
	r.row("each link, of RSS (of memory of its own)", "< 80 KiB", "%s (%s); RSS %s, peak %s", each(u.RSS, bare.RSS), each(u.Anon, bare.Anon), mib(u.RSS), mib(u.Peak))
	r.row("each link, heap and stacks alive", "", "%s and %s; %d descriptors", each(u.Heap, bare.Heap), each(u.Stacks, bare.Stacks), u.Descriptors)
	r.row("processor, nobody says anything", "", "%.1f %% of one", 100*float64(u.CPU-before.CPU)/float64(idle))
}

// after is true once, and from then on, when d has passed.
func after(d time.Duration) func() bool {
	t := time.NewTimer(d)
	return func() bool { <-t.C; return true }
}

// push declares for every node, and returns when the last one was told.
func (r *run) push(rounds int) {
	r.Helper()
	var told, last, command []time.Duration
	before := r.usage()
	for range rounds {
		mark := r.mark()
		r.crowd.Expect(strings.TrimSpace(mark))
		began := time.Now()
		must(r, r.plane.Declare(r.Context(), "fleet", mark, "every"))
		command = append(command, time.Since(began))
		must(r, r.crowd.Await(time.Minute, "every node was told", func() bool { return r.crowd.Told() == len(r.crowd.Nodes) }))
		var each []time.Duration
		for _, at := range r.crowd.Heard() {
			each = append(each, at.Sub(began))
		}
		told, last = append(told, each...), append(last, of(1, each))
		r.reported()
	}
	r.row(fmt.Sprintf("declare --on every -> told, %d rounds", rounds), "last < 2 s", "%s; the last of a round p50 %s; the command %s; cpu a round %s", spread(told),
		round(of(.5, last)), round(of(.5, command)), round((r.usage().CPU-before.CPU)/time.Duration(rounds)))
}

// reported returns when every node has said that it has what it was told, and the
// control plane knows it.
func (r *run) reported() {
	r.Helper()
	must(r, r.crowd.Await(2*time.Minute, "every node has reported", func() bool { return r.crowd.Owing() == 0 }))
}

// pushOne declares for one node among all that are idle.
func (r *run) pushOne() {
	r.Helper()
	n := r.crowd.Nodes[len(r.crowd.Nodes)/2]
	var took []time.Duration
	for range r.probes {
		mark := r.mark()
		r.crowd.Expect(strings.TrimSpace(mark))
		began := time.Now()
		must(r, r.plane.Declare(r.Context(), "one", mark, "node="+n.Name))
		must(r, r.crowd.Await(time.Minute, "the node was told", func() bool { return r.crowd.Told() > 0 }))
		took = append(took, r.crowd.Heard()[0].Sub(began))
	}
	r.row("declare --on node=N -> told", "p99 < 1 s", "%s", spread(took))
	r.reported()
	if k := r.known()[n.ID]; k.Wanted == 0 || k.Applied != k.Wanted {
		r.Errorf("the node is %+v", k)
	}
}

// pushApplied does so for a real host, and looks for the file.
func (r *run) pushApplied() {
	r.Helper()
	host := filepath.Join(r.bin, "mesh-host")
	root := filepath.Join(r.top, "h")
	must(r, os.MkdirAll(filepath.Join(root, "var/lib/nox-mesh"), 0o700)) // as `mesh-host install` leaves it
	must(r, os.MkdirAll(filepath.Join(root, "srv"), 0o755))
	log, err := os.Create(filepath.Join(r.top, "host.log"))
	must(r, err)
	defer log.Close()
	serve := exec.Command(host, "run", "--root", root)
	serve.Stdout, serve.Stderr = log, log
	serve.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(r, serve.Start())
	defer func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		_ = serve.Wait()
	}()
	enrol := exec.CommandContext(r.Context(), host, "--root", root, "enrol", "-")
	enrol.Stdin = strings.NewReader(r.token(1, "--name", "real").Text())
	if out, err := enrol.CombinedOutput(); err != nil {
		said, _ := os.ReadFile(log.Name())
		r.Fatalf("%v\n%s%s", err, out, said)
	}
	var took []time.Duration
	for range r.probes {
		mark := r.mark()
		began := time.Now()
		must(r, r.plane.Declare(r.Context(), "real", mark, "node=real"))
		for {
			if b, _ := os.ReadFile(filepath.Join(root, "srv/real")); string(b) == mark {
				break
			}
			if time.Since(began) > time.Minute {
				r.Fatal("the real host has not applied its declaration after a minute")
			}
			time.Sleep(time.Millisecond)
		}
		took = append(took, time.Since(began))
	}
	r.row("declare --on node=N -> a real host has applied it", "p99 < 1 s", "%s", spread(took))
}

// own measures what the node that is on the control plane's own machine sees,
// while the others are idle, while all are told something, and while strangers
// knock as fast as they can.
func (r *run) own() {
	r.Helper()
	n := r.make(r.token(1, "--name", "own"), 0, 1)[0]
	n.Source = netip.MustParseAddr(fleet.Here)
	_, err := n.Join(r.within(time.Minute))
	must(r, err)
	r.crowd.Stay(n)
	r.allUp(time.Minute)
	must(r, r.crowd.Await(time.Minute, "the own node has a declaration", func() bool { return r.crowd.Last(n).Generation > 0 }))
	report := func(while func() bool) (took []time.Duration) {
		for while() {
			began := time.Now()
			must(r, n.Report(r.within(time.Minute), r.crowd.Last(n)))
			took = append(took, time.Since(began))
		}
		return took
	}
	times := func(n int) func() bool { return func() bool { n--; return n >= 0 } }
	r.row("the own node reports, the others idle", "", "%s", spread(report(times(r.probes))))

	var wg sync.WaitGroup
	var done atomic.Bool
	mark := r.mark()
	wg.Go(func() {
		defer done.Store(true)
		if err := r.plane.Declare(r.Context(), "fleet", mark, "every"); err != nil {
			r.Error(err)
		}
	})
	r.row("the own node reports, all are told something", "", "%s", spread(report(func() bool { return !done.Load() })))
	wg.Wait()

	stop := r.knock(64)
	r.row("the own node reports, strangers knock", "", "%s", spread(report(times(r.probes))))
	began, tries := time.Now(), 0
	for {
		tries++
		if err = n.Ack(r.within(time.Minute)); err == nil || tries == 100 {
			break
		}
	}
	must(r, err)
	r.row("the own node connects anew, strangers knock", "", "%s, %d tries; %d strangers", round(time.Since(began)), tries, stop())
}

// knock opens connections as fast as it can, and keeps each as long as it is let.
func (r *run) knock(at int) (stop func() int64) {
	var wg sync.WaitGroup
	var count atomic.Int64
	end := make(chan struct{})
	for i := range at {
		wg.Go(func() {
			var held []net.Conn
			defer func() {
				for _, c := range held {
					c.Close()
				}
			}()
			for k := 0; ; k++ {
				select {
				case <-end:
					return
				default:
				}
				from := netip.AddrPortFrom(fleet.Source(200_000+(k*at+i)%20_000), 0)
				d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(from), Timeout: 5 * time.Second}
				c, err := d.Dial("tcp", r.plane.Address)
				if err != nil {
					continue
				}
				count.Add(1)
				if held = append(held, c); len(held) > 32 {
					held[0].Close()
					held = held[1:]
				}
			}
		})
	}
	return func() int64 { close(end); wg.Wait(); return count.Load() }
}

// revoke revokes some, one after the other, and looks at when each was told and
// that nobody else noticed.
func (r *run) revoke(count int) {
	r.Helper()
	gone := r.crowd.Nodes[:count]
	others := r.crowd.Downs(gone...)
	var took []time.Duration
	for _, n := range gone {
		up := r.crowd.Up()
		began := time.Now()
		_, err := r.plane.Ask(r.Context(), "revoke", n.Name)
		must(r, err)
		must(r, r.crowd.Await(time.Minute, "the revoked node is down", func() bool { return r.crowd.Up() < up }))
		took = append(took, time.Since(began))
	}
	cut := r.crowd.Downs(gone...) - others
	r.row(fmt.Sprintf("revoke -> its stream is closed, %d times", count), "p99 < 1 s", "%s; other links lost: %d", spread(took), cut)
	if cut > 0 {
		r.Errorf("revoking %d nodes took the links of %d others", count, cut)
	}
	r.crowd.Nodes = r.crowd.Nodes[count:]
}

// restart ends the control plane and starts it again.
func (r *run) restart(how syscall.Signal, patience time.Duration) {
	r.Helper()
	steady := r.usage().RSS
	began := time.Now()
	must(r, r.plane.Stop(how))
	stopped := time.Since(began)
	ready, err := r.plane.Start(r.Context())
	must(r, err)
	must(r, r.crowd.Await(time.Minute, "the first links are down", func() bool { return r.crowd.Downs() > 0 }))
	half := func() bool { return r.crowd.Up() >= len(r.crowd.Nodes)/2 }
	must(r, r.crowd.Await(patience, "half of the links are up", half))
	r.allUp(patience)
	u := r.usage()
	r.row(fmt.Sprintf("%s and start, %d links", name(how), len(r.crowd.Nodes)), "all back < 60 s", "stopped %s, ready %s, all back %s; peak %s of %s steady (%.2f), cpu %s",
		round(stopped), round(ready), round(time.Since(began)), mib(u.Peak), mib(steady), float64(u.Peak)/float64(steady), round(u.CPU))
}

func name(s syscall.Signal) string {
	if s == syscall.SIGKILL {
		return "kill -9"
	}
	return "SIGTERM"
}
