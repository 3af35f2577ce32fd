package profile

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxAddresses bounds the addresses that are told, all together: a machine
	// that runs containers can have thousands.
	maxAddresses = 64
	// maxNetTable bounds a table of /proc/net, in bytes. A router's can be larger.
	maxNetTable = 16 << 20
	// maxPorts are more than a bridge has (BR_MAX_PORTS in the kernel).
	maxPorts = 1 << 10
)

// ownInterfaces are those that are up and have global unicast addresses, by name,
// and all of these addresses; both are sorted. It is more than a token names when
// nobody said where the control plane is (there, only what has a default route
// counts): it says where a machine may be reached, not where a mesh is to call.
//
// Left out are addresses of IPv6 that last a day or are not in force, and
// bridges that lead nowhere but to containers and virtual machines of this
// machine: theirs are the same everywhere. An error beside them says which of the
// kernel's tables could not be read to its end: addresses that last a day may then be told,
// and a bridge that only a route makes one that leads out is not.
func (s source) ownInterfaces() (out []Interface, addresses []string, err error) {
	interfaces, err := s.interfaces()
	if err != nil {
		return nil, nil, err
	}
	passing, err := s.passing()
	leading, unread := s.leading()
	err = errors.Join(err, unread)
	var all []netip.Addr
	slices.SortFunc(interfaces, func(a, b net.Interface) int { return strings.Compare(a.Name, b.Name) })
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || !leading[i.Name] && s.inward(i.Name) {
			continue
		}
		has, err := s.addresses(i)
		if err != nil {
			continue // gone since
		}
		var found []netip.Addr
		for _, a := range has {
			p, err := netip.ParsePrefix(a.String())
			if ip := p.Addr().Unmap(); err == nil && ip.IsGlobalUnicast() && !passing[ip] {
				found = append(found, ip)
			}
		}
		slices.SortFunc(found, netip.Addr.Compare)
		found = slices.Compact(found)
		found = found[:min(len(found), maxAddresses-len(all))]
		if len(found) > 0 {
			out = append(out, Interface{Name: line(i.Name), Addresses: words(found)})
			all = append(all, found...)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return out, words(slices.Compact(all)), err
}

func words(addresses []netip.Addr) (out []string) {
	for _, a := range addresses {
		out = append(out, a.String())
	}
	return out
}

// Flags of an address of IPv6, as /proc/net/if_inet6 has them (if_addr.h).
const addrPassing = 0x01 /* temporary */ | 0x08 /* a duplicate */ | 0x20 /* deprecated */ | 0x40 /* tentative */

// passing are the addresses that come and go by themselves.
func (s source) passing() (map[netip.Addr]bool, error) {
	out := map[netip.Addr]bool{}
	err := s.netTable("/proc/net/if_inet6", func(f []string) {
		if len(f) != 6 {
			return
		}
		raw, err := hex.DecodeString(f[0])
		flags, second := strconv.ParseUint(f[4], 16, 32)
		if a, ok := netip.AddrFromSlice(raw); ok && err == nil && second == nil && flags&addrPassing != 0 {
			out[a] = true
		}
	})
	return out, err
}

// netTable reads the rows of a table of /proc/net, and keeps none: it may have a
// million. With an error it has seen those before it.
func (s source) netTable(path string, row func(fields []string)) error {
	f, err := openRegular(s.kernel.Path(path))
	if err != nil || f == nil {
		return err
	}
	defer f.Close()
	all := &io.LimitedReader{R: f, N: maxNetTable}
	in := bufio.NewScanner(all)
	for in.Scan() {
		row(strings.Fields(in.Text()))
	}
	if in.Err() == nil && all.N == 0 {
		return fmt.Errorf("%q is larger than %d MiB", f.Name(), maxNetTable>>20)
	}
	return in.Err()
}

// inward says that an interface is a bridge to what is inside this machine: none
// of its ports leads to hardware, a VLAN, a bond or another kind that the kernel
// names. A veth and a tap have none of these.
func (s source) inward(name string) bool {
	at := "/sys/class/net/" + name
	if clean(name) != name || !exists(s.kernel, at+"/bridge") {
		return false
	}
	dir, err := openDir(s.kernel.Path(at + "/brif"))
	if err != nil {
		return false
	}
	defer dir.Close()
	ports, err := dir.Readdirnames(maxPorts)
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	for _, port := range ports {
		b, _ := read(s.kernel.Path("/sys/class/net/" + port + "/uevent"))
		if exists(s.kernel, "/sys/class/net/"+port+"/device") || bytes.Contains(b, []byte("DEVTYPE=")) {
			return false
		}
	}
	return true
}

// leading are the interfaces that a default route of IPv4 or IPv6 goes through:
// they lead out, whatever they are.
func (s source) leading() (map[string]bool, error) {
	out := map[string]bool{}
	err := s.netTable("/proc/net/route", func(f []string) {
		if len(f) > 7 && f[1] == "00000000" && f[7] == "00000000" {
			out[f[0]] = true
		}
	})
	return out, errors.Join(err, s.netTable("/proc/net/ipv6_route", func(f []string) {
		if len(f) == 10 && f[0] == strings.Repeat("0", 32) && f[1] == "00" {
			out[f[9]] = true
		}
	}))
}
