package profile

import (
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestAddressesAreTheMachinesOwn(t *testing.T) {
	up := net.FlagUp
	at := map[string][]string{
		"lo":      {"127.0.0.1/8", "::1/128", "203.0.113.9/32"}, // what is announced by a routing daemon is on lo
		"eth0":    {"192.0.2.7/24", "2001:db8::7/64", "2001:db8::dead/64", "2001:db8::01d/64", "fe80::1/64"},
		"docker0": {"172.17.0.1/16"}, "virbr0": {"192.168.122.1/24"}, "vmbr0": {"198.51.100.4/24"}, "br-lxc": {"10.9.0.2/24"},
		"veth12": {"fe80::2/64"}, "wg0": {"10.8.0.3/32", "::ffff:10.8.0.3/128"}, "eth1": {"192.0.2.99/24"}, "a": {"10.1.1.1/8", "10.1.1.1/16"},
	}
	l := tree(t, map[string]string{
		"/proc/net/if_inet6": "20010db8000000000000000000000007 02 40 00 80     eth0\n" +
			"20010db800000000000000000000dead 02 40 00 01     eth0\n" +
			"20010db800000000000000000000001d 02 40 00 20     eth0\nx\n",
		"/proc/net/route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
			"br-lxc\t00000000\t010009C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
			"docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n",
		// docker's has a container, libvirt's nothing but its tap, Proxmox's the card;
		// that of a container is on a veth, with the way out.
		"/sys/class/net/docker0/bridge/": "", "/sys/class/net/docker0/brif/veth12": "", "/sys/class/net/veth12/uevent": "INTERFACE=veth12\nIFINDEX=9\n",
		"/sys/class/net/virbr0/bridge/": "", "/sys/class/net/virbr0/brif/tap0": "", "/sys/class/net/tap0/tun_flags": "0x1002\n",
		"/sys/class/net/vmbr0/bridge/": "", "/sys/class/net/vmbr0/brif/eth1": "", "/sys/class/net/eth1/device/": "",
		"/sys/class/net/br-lxc/bridge/": "", "/sys/class/net/br-lxc/brif/veth12": "",
	})
	s := quiet(l)
	s.interfaces = func() (out []net.Interface, _ error) {
		for name := range at { // in any order
			i := net.Interface{Name: name, Flags: up}
			if name == "eth1" {
				i.Flags = 0
			}
			out = append(out, i)
		}
		return out, nil
	}
	s.addresses = func(i net.Interface) (out []net.Addr, _ error) {
		for _, a := range at[i.Name] {
			ip, n, err := net.ParseCIDR(a)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		return out, nil
	}
	want := []Interface{
		{"a", []string{"10.1.1.1"}}, {"br-lxc", []string{"10.9.0.2"}}, {"eth0", []string{"192.0.2.7", "2001:db8::7"}},
		{"lo", []string{"203.0.113.9"}}, {"vmbr0", []string{"198.51.100.4"}}, {"wg0", []string{"10.8.0.3"}},
	}
	got, all, err := s.ownInterfaces()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v, %v\nwant %v", got, err, want)
	}
	if !slices.Equal(all, []string{"10.1.1.1", "10.8.0.3", "10.9.0.2", "192.0.2.7", "198.51.100.4", "203.0.113.9", "2001:db8::7"}) {
		t.Errorf("%v", all)
	}
}

// bridges is a machine with some, each with one address: a VLAN is a port of b0,
// b4 and b6 have the default routes, b7 nothing at all.
func bridges(t *testing.T) source {
	s := quiet(tree(t, map[string]string{
		"/sys/class/net/b0/bridge/": "", "/sys/class/net/b0/brif/v": "", "/sys/class/net/v/uevent": "DEVTYPE=vlan\nINTERFACE=v\n",
		"/sys/class/net/b4/bridge/": "", "/sys/class/net/b4/brif/": "",
		"/sys/class/net/b6/bridge/": "", "/sys/class/net/b6/brif/": "", "/sys/class/net/b7/bridge/": "", "/sys/class/net/b7/brif/": "",
		"/proc/net/route":      "b4\t00000000\t010009C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
		"/proc/net/ipv6_route": "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003       b6\n",
	}))
	names := []string{"b0", "b4", "b6", "b7", "eth0"}
	s.interfaces = func() (out []net.Interface, _ error) {
		for n, name := range names {
			out = append(out, net.Interface{Index: n, Name: name, Flags: net.FlagUp})
		}
		return out, nil
	}
	s.addresses = func(i net.Interface) ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.IPv4(192, 0, 2, byte(i.Index)), Mask: net.CIDRMask(24, 32)}}, nil
	}
	return s
}

func TestBridgesThatLeadOut(t *testing.T) {
	want := []Interface{{"b0", []string{"192.0.2.0"}}, {"b4", []string{"192.0.2.1"}}, {"b6", []string{"192.0.2.2"}}, {"eth0", []string{"192.0.2.4"}}}
	if got, _, err := bridges(t).ownInterfaces(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v, %v\nwant %v", got, err, want)
	}
	if s := bridges(t); s.inward("../b7") || s.inward("eth0") || !s.inward("b7") {
		t.Error("what is no bridge is one, or the other way round")
	}
}

// TestATableThatIsTooLargeIsSaid: a router that has the whole Internet's routes. A
// default route that comes before the end of what is read counts.
func TestATableThatIsTooLargeIsSaid(t *testing.T) {
	const (
		v4 = "b4\t00000000\t010009C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
		v6 = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003       b6\n"
	)
	many := strings.Repeat("eth0 "+strings.Repeat("x", 1000)+"\n", 17<<10)
	for name, c := range map[string]struct {
		table, text string
		want        []string
	}{
		"route, first":      {"/proc/net/route", v4 + many, []string{"192.0.2.0", "192.0.2.1", "192.0.2.2", "192.0.2.4"}},
		"route, last":       {"/proc/net/route", many + v4, []string{"192.0.2.0", "192.0.2.2", "192.0.2.4"}},
		"ipv6_route, first": {"/proc/net/ipv6_route", v6 + many, []string{"192.0.2.0", "192.0.2.1", "192.0.2.2", "192.0.2.4"}},
		"ipv6_route, last":  {"/proc/net/ipv6_route", many + v6, []string{"192.0.2.0", "192.0.2.1", "192.0.2.4"}},
		"if_inet6":          {"/proc/net/if_inet6", many, []string{"192.0.2.0", "192.0.2.1", "192.0.2.2", "192.0.2.4"}},
	} {
		s := bridges(t)
		must(t, os.WriteFile(s.kernel.Path(c.table), []byte(c.text), 0o644))
		_, all, err := s.ownInterfaces()
		if err == nil || !strings.Contains(err.Error(), c.table+`" is larger than 16 MiB`) || !slices.Equal(all, c.want) {
			t.Errorf("%s: %q, %v", name, all, err)
		}
	}
}

func TestATableThatCannotBeReadIsInUnknown(t *testing.T) {
	for table, want := range map[string]string{"/proc/net/route": "192.0.2.0 192.0.2.2 192.0.2.4", "/proc/net/if_inet6": "192.0.2.0 192.0.2.1 192.0.2.2 192.0.2.4"} {
		s := bridges(t)
		must(t, os.RemoveAll(s.kernel.Path(table)))
		must(t, os.Mkdir(s.kernel.Path(table), 0o755))
		_, inv := s.find(t.Context(), has)
		if why := inv.Unknown["addresses"]; !strings.Contains(why, table+`" is not a regular file`) || strings.Join(inv.Addresses, " ") != want {
			t.Errorf("%s: %q, %q", table, inv.Addresses, why)
		}
	}
}

func TestAddressesAreFew(t *testing.T) {
	s := quiet(tree(t, nil))
	s.interfaces = func() ([]net.Interface, error) {
		return []net.Interface{{Name: "a", Flags: net.FlagUp}, {Name: "b", Flags: net.FlagUp}, {Name: "c", Flags: net.FlagUp}}, nil
	}
	s.addresses = func(i net.Interface) (out []net.Addr, _ error) {
		for n := range 40 {
			out = append(out, &net.IPNet{IP: net.IPv4(10, 0, i.Name[0], byte(n)), Mask: net.CIDRMask(8, 32)})
		}
		return out, nil
	}
	got, all, err := s.ownInterfaces()
	if err != nil || len(got) != 2 || len(got[0].Addresses) != 40 || len(got[1].Addresses) != 24 || len(all) != 64 {
		t.Errorf("%v, %v, %v", got, all, err)
	}
}
