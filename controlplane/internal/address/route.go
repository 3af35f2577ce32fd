package address

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// routedAddresses returns the global addresses of the interfaces that have a
// default route, of the family of that route. On a network with no way out (a
// switch between a few machines) no interface has one: then it is those of all
// interfaces but loopback.
func routedAddresses() ([]netip.Addr, error) {
	v4, err := readRoutes("/proc/net/route", defaultRoutes4)
	if err != nil {
		return nil, err
	}
	v6, err := readRoutes("/proc/net/ipv6_route", defaultRoutes6)
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	collect := func(names []string, want func(netip.Addr) bool) {
		for _, name := range names {
			i, err := net.InterfaceByName(name)
			if err != nil {
				continue // gone since
			}
			as, err := i.Addrs()
			if err != nil {
				continue
			}
			for _, ip := range ipsOf(as) {
				if want(ip) && ip.IsGlobalUnicast() {
					out = append(out, ip)
				}
			}
		}
	}
	collect(v4, netip.Addr.Is4)
	collect(v6, netip.Addr.Is6)
	if len(out) > 0 {
		return out, nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, fault.Failedf("cannot list the addresses of this machine: %w", err)
	}
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 {
			collect([]string{i.Name}, netip.Addr.IsValid)
		}
	}
	return out, nil
}

func readRoutes(path string, names func(io.Reader) []string) ([]string, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil // a kernel without that family
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return names(f), nil
}

// defaultRoutes4 reads /proc/net/route: interface, destination, gateway,
// flags, …, mask in field 7; all hex.
func defaultRoutes4(r io.Reader) []string {
	return routes(r, func(f []string) (string, bool) {
		if len(f) < 8 || f[1] != "00000000" || f[7] != "00000000" {
			return "", false
		}
		return f[0], up(f[3])
	})
}

// defaultRoutes6 reads /proc/net/ipv6_route: destination, its length, …, flags
// in field 8, interface in field 9; all hex. The kernel's own "unreachable"
// default is on lo and has RTF_REJECT.
func defaultRoutes6(r io.Reader) []string {
	return routes(r, func(f []string) (string, bool) {
		if len(f) < 10 || f[1] != "00" || strings.Trim(f[0], "0") != "" {
			return "", false
		}
		return f[9], f[9] != "lo" && up(f[8])
	})
}

func up(flags string) bool {
	n, err := strconv.ParseUint(flags, 16, 32)
	return err == nil && n&unix.RTF_UP != 0 && n&unix.RTF_REJECT == 0
}

func routes(r io.Reader, pick func([]string) (string, bool)) []string {
	var out []string
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if name, ok := pick(strings.Fields(lines.Text())); ok && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
