// Package address knows where the control plane can be found: what it listens
// on, what of that other machines can dial, and which addresses it could never
// answer.
//
// It promises no reachability. An address of another machine, or a name, may
// lead here through a forwarder that cannot be seen from here, so those are
// taken at the operator's word; an address of this machine on which nothing
// listens is refused.
package address

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// maxFound bounds what is found by itself; a token has room for more.
const maxFound = 8

// Served is what the control plane listens on.
type Served []netip.AddrPort

// Listen opens a listener for each of the configured addresses. "[::]" means
// every address, on machines without IPv6 too.
func Listen(addresses []string) ([]net.Listener, Served, error) {
	var ls []net.Listener
	var served Served
	for _, a := range addresses {
		l, err := listen(a)
		if err != nil {
			for _, l := range ls {
				l.Close()
			}
			return nil, nil, fault.Failedf("cannot listen on %q: %w", a, err).
				Hint("end what has the port, or set listen in controller.toml")
		}
		ap := l.Addr().(*net.TCPAddr).AddrPort()
		ls = append(ls, l)
		served = append(served, netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()))
	}
	return ls, served, nil
}

// listen listens on one address. "[::]" is both families. The library finds out whether
// it can be by binding 127.0.0.1 in IPv6's clothes, which fails on a machine of IPv6
// alone whose loopback has no such address, and then listens on IPv4 alone.
func listen(address string) (net.Listener, error) {
	port, every := strings.CutPrefix(address, "[::]:")
	if !every {
		return net.Listen("tcp", address)
	}
	both := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) {
			set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
		})
		return errors.Join(err, set)
	}}
	l, err := both.Listen(context.Background(), "tcp6", address)
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) {
		return net.Listen("tcp4", ":"+port) // a kernel without IPv6
	}
	return l, err
}

// covers reports whether something listens on ip and port.
func (s Served) covers(ip netip.Addr, port uint16) bool {
	return slices.ContainsFunc(s, func(l netip.AddrPort) bool {
		any := l.Addr().IsUnspecified() && (l.Addr().Is6() || ip.Is4())
		return l.Port() == port && (any || l.Addr() == ip)
	})
}

// String lists what is listened on.
func (s Served) String() string {
	var out []string
	for _, l := range s {
		out = append(out, l.String())
	}
	return strings.Join(out, ", ")
}

// Check refuses an address that cannot lead to one of the listeners.
func (s Served) Check(address string) error { return s.check(address, ownAddresses) }

func (s Served) check(address string, own func() ([]netip.Addr, error)) error {
	if err := link.CheckAddress(address); err != nil {
		return fault.Usagef("cannot use the address: %w", err)
	}
	host, _, _ := net.SplitHostPort(address)
	if host == "localhost" {
		address = strings.Replace(address, "localhost", "127.0.0.1", 1)
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil // a name: nobody knows where it leads from elsewhere
	}
	ip := ap.Addr().Unmap()
	if ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() {
		return fault.Refusedf("cannot serve %q: no other machine can dial that", address)
	}
	mine, err := own()
	if err != nil {
		return err
	}
	if (ip.IsLoopback() || slices.Contains(mine, ip)) && !s.covers(ip, ap.Port()) {
		return fault.Refusedf("cannot serve %q: the control plane listens on %s", address, s).
			Hint("set listen in controller.toml and start it again, or use another address")
	}
	return nil
}

func ownAddresses() ([]netip.Addr, error) {
	as, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fault.Failedf("cannot list the addresses of this machine: %w", err)
	}
	return ipsOf(as), nil
}

func ipsOf(as []net.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range as {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out
}

// Find returns where other machines can dial the listeners: the addresses of
// interfaces that have a default route (of all, when none has one), and those that are listened on by
// themselves; loopback only if that is all there is.
func (s Served) Find() ([]string, error) {
	routed, err := routedAddresses()
	if err != nil {
		return nil, err
	}
	return s.find(routed)
}

func (s Served) find(routed []netip.Addr) ([]string, error) {
	var out, loopback []string
	add := func(list *[]string, ip netip.Addr, port uint16) {
		if a := netip.AddrPortFrom(ip, port).String(); len(*list) < maxFound && !slices.Contains(*list, a) {
			*list = append(*list, a)
		}
	}
	for _, l := range s {
		ip := l.Addr()
		switch {
		case ip.IsUnspecified():
			for _, r := range routed {
				if s.covers(r, l.Port()) {
					add(&out, r, l.Port())
				}
			}
			add(&loopback, netip.AddrFrom4([4]byte{127, 0, 0, 1}), l.Port())
		case ip.IsLoopback():
			add(&loopback, ip, l.Port())
		default:
			add(&out, ip, l.Port())
		}
	}
	if len(out) == 0 {
		out = loopback
	}
	if len(out) == 0 {
		return nil, fault.Failedf("cannot find an address of the control plane: it listens on %s", s).
			Hint("run `mesh-controller address add HOST:PORT`")
	}
	return out, nil
}
