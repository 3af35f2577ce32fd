package declaration

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Protocol is what a port speaks.
type Protocol string

// The protocols.
const (
	TCP  Protocol = "tcp"
	UDP  Protocol = "udp"
	SCTP Protocol = "sctp"
)

// A Port of a container that can be reached from outside.
type Port struct {
	// Host is the machine's port, Container the container's.
	Host, Container int
	Protocol        Protocol
	// Address is one of the machine's; "" is all of them.
	Address string
}

var (
	protocolRule = words(TCP, UDP, SCTP)
	addressRule  = &rule{check: addressFault, max: 45, like: "127.0.0.1"}
)

// addressFault wants the one spelling of an address.
func addressFault(s string) string {
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil || a.Zone() != "":
		return shown(s) + " is not an IP address"
	case a.IsUnspecified():
		return fmt.Sprintf("%q means all addresses: leave it out", s)
	case a.Unmap().String() != s:
		return fmt.Sprintf("%q is to be written %q", s, a.Unmap())
	}
	return ""
}

func (p *Port) fields() []field {
	return []field{
		{"host", number[int]{&p.Host, 0, 1, 65535}, true, "The port of the machine."},
		{"container", number[int]{&p.Container, 0, 1, 65535}, true, "The port in the container."},
		{"protocol", text[Protocol]{&p.Protocol, protocolRule, TCP}, false, "What the port speaks."},
		{"address", text[string]{&p.Address, addressRule, ""}, false, "The address of the machine it is on. All of them, when nothing is said."},
	}
}

func (p *Port) check(*object) {}

// claim is the machine's port: "port:8080/tcp", "port:127.0.0.1:53/udp".
func (p *Port) claim() string {
	at := strconv.Itoa(p.Host)
	if p.Address != "" {
		at = net.JoinHostPort(p.Address, at)
	}
	return "port:" + at + "/" + string(p.Protocol)
}
