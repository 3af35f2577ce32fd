package profile

import (
	"bytes"
	"encoding/hex"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// maxAddresses bounds the addresses that are told, all together: a machine that
// runs containers can have thousands.
const maxAddresses = 64

// ownInterfaces are those that are up and have global unicast addresses, by name;
// their addresses are sorted. It is more than a token names when nobody said
// where the control plane is (there, only what has a default route counts): it
// says where a machine may be reached, not where a mesh is to call.
//
// Left out are addresses of IPv6 that last a day or are not in force, and
// bridges that lead nowhere but to containers and virtual machines of this
// machine: theirs are the same everywhere.
func (s source) ownInterfaces() ([]Interface, error) {
	all, err := s.interfaces()
	if err != nil {
		return nil, err
	}
	passing := s.passing()
	var out []Interface
	left := maxAddresses
	slices.SortFunc(all, func(a, b net.Interface) int { return strings.Compare(a.Name, b.Name) })
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || s.inward(i.Name) {
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
		found = found[:min(len(found), left)]
		if left -= len(found); len(found) > 0 {
			out = append(out, Interface{Name: line(i.Name), Addresses: words(found)})
		}
	}
	return out, nil
}

func words(addresses []netip.Addr) []string {
	out := make([]string, len(addresses))
	for i, a := range addresses {
		out[i] = a.String()
	}
	return out
}

// flat is all addresses of interfaces, sorted, without repetition.
func flat(all []Interface) []string {
	var found []netip.Addr
	for _, i := range all {
		for _, s := range i.Addresses {
			if a, err := netip.ParseAddr(s); err == nil {
				found = append(found, a)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, netip.Addr.Compare)
	return words(slices.Compact(found))
}

// Flags of an address of IPv6, as /proc/net/if_inet6 has them (if_addr.h).
const addrPassing = 0x01 /* temporary */ | 0x08 /* a duplicate */ | 0x20 /* deprecated */ | 0x40 /* tentative */

// passing are the addresses that come and go by themselves.
func (s source) passing() map[netip.Addr]bool {
	b, _ := readUpTo(s.kernel.Path("/proc/net/if_inet6"), maxMounts)
	out := map[netip.Addr]bool{}
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) != 6 {
			continue
		}
		raw, err := hex.DecodeString(f[0])
		flags, second := strconv.ParseUint(f[4], 16, 32)
		if a, ok := netip.AddrFromSlice(raw); ok && err == nil && second == nil && flags&addrPassing != 0 {
			out[a] = true
		}
	}
	return out
}

// inward says that an interface is a bridge to what is inside this machine: none
// of its ports leads to hardware, a VLAN, a bond or another kind that the kernel
// names, and no default route leaves through it. A veth and a tap have none of
// these.
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
	ports, _ := dir.Readdirnames(maxDiskNames)
	for _, port := range ports {
		b, _ := read(s.kernel.Path("/sys/class/net/" + port + "/uevent"))
		if exists(s.kernel, "/sys/class/net/"+port+"/device") || bytes.Contains(b, []byte("DEVTYPE=")) {
			return false
		}
	}
	return !s.leads(name)
}

// leads says that a default route of IPv4 or IPv6 goes through an interface.
func (s source) leads(name string) bool {
	b, _ := readUpTo(s.kernel.Path("/proc/net/route"), maxMounts)
	for line := range bytes.Lines(b) {
		if f := strings.Fields(string(line)); len(f) > 7 && f[0] == name && f[1] == "00000000" && f[7] == "00000000" {
			return true
		}
	}
	b, _ = readUpTo(s.kernel.Path("/proc/net/ipv6_route"), maxMounts)
	for line := range bytes.Lines(b) {
		if f := strings.Fields(string(line)); len(f) == 10 && f[9] == name && f[0] == strings.Repeat("0", 32) && f[1] == "00" {
			return true
		}
	}
	return false
}
