package address

import (
	"net"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func served(s ...string) (out Served) {
	for _, a := range s {
		out = append(out, netip.MustParseAddrPort(a))
	}
	return out
}

func ips(s ...string) (out []netip.Addr) {
	for _, a := range s {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		listen Served
		routed []netip.Addr
		want   string
	}{
		{served("[::]:7443"), ips("192.0.2.7", "2001:db8::7"), "192.0.2.7:7443 [2001:db8::7]:7443"},
		{served("0.0.0.0:7443"), ips("192.0.2.7", "2001:db8::7"), "192.0.2.7:7443"},
		{served("[::]:7443"), nil, "127.0.0.1:7443"},
		{served("127.0.0.1:7443"), ips("192.0.2.7"), "127.0.0.1:7443"},
		{served("[::1]:7443"), ips("192.0.2.7"), "[::1]:7443"},
		{served("10.0.0.1:7443", "127.0.0.1:7443"), ips("192.0.2.7"), "10.0.0.1:7443"},
		{served("[::]:1", "[::]:2"), ips("192.0.2.7"), "192.0.2.7:1 192.0.2.7:2"},
	} {
		got, err := c.listen.find(c.routed)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%v with %v: %v, %v, want %s", c.listen, c.routed, got, err, c.want)
		}
	}
}

func TestCheckRefusesWhatCannotBeServed(t *testing.T) {
	own := func() ([]netip.Addr, error) { return ips("127.0.0.1", "192.0.2.7", "2001:db8::7"), nil }
	const all, loop, four = "[::]:7443", "127.0.0.1:7443", "0.0.0.0:7443"
	for _, c := range []struct {
		listen, address string
		kind            fault.Kind
	}{
		{all, "192.0.2.7:7443", 0},
		{all, "[2001:db8::7]:7443", 0},
		{all, "127.0.0.1:7443", 0},
		{all, "mesh.example.com:443", 0},
		{all, "198.51.100.1:443", 0}, // may be forwarded
		{all, "192.0.2.7:7444", fault.Refused},
		{all, "0.0.0.0:7443", fault.Refused},
		{all, "[fe80::1]:7443", fault.Refused},
		{all, "224.0.0.1:7443", fault.Refused},
		{loop, "192.0.2.7:7443", fault.Refused},
		{loop, "127.0.0.1:7443", 0},
		{loop, "localhost:7443", 0},
		{loop, "localhost:1", fault.Refused},
		{four, "[2001:db8::7]:7443", fault.Refused},
		{all, "nonsense", fault.Usage},
		{all, "a:0", fault.Usage},
	} {
		if err := served(c.listen).check(c.address, own); fault.KindOf(err) != c.kind {
			t.Errorf("%s on %s: %v, want kind %d", c.address, c.listen, err, c.kind)
		}
	}
}

func TestDefaultRoutes(t *testing.T) {
	const v4 = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	100	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	100	00FFFFFF	0	0	0
down	00000000	010200C0	0002	0	0	100	00000000	0	0	0
half	00000000	010200C0	0003	0	0	100	00000080	0	0	0
`
	if got := defaultRoutes4(strings.NewReader(v4)); !reflect.DeepEqual(got, []string{"eth0"}) {
		t.Errorf("IPv4: %v", got)
	}
	zero := strings.Repeat("0", 32)
	v6 := zero + " 00 " + zero + " 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 wlan0\n" +
		"20010db8" + zero[8:] + " 40 " + zero + " 00 " + zero + " 00000100 00000001 00000000 00000001 eth9\n" +
		zero + " 00 " + zero + " 00 " + zero + " ffffffff 00000001 00000000 00200200 lo\n"
	if got := defaultRoutes6(strings.NewReader(v6)); !reflect.DeepEqual(got, []string{"wlan0"}) {
		t.Errorf("IPv6: %v", got)
	}
}

func TestListenSaysWhatIsTaken(t *testing.T) {
	ls, s, err := Listen([]string{"127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer ls[0].Close()
	if !s.covers(netip.MustParseAddr("127.0.0.1"), s[0].Port()) {
		t.Errorf("%v does not cover itself", s)
	}
	if _, _, err := Listen([]string{"127.0.0.1:0", s[0].String()}); err == nil || !strings.Contains(err.Error(), s[0].String()) {
		t.Errorf("%v", err)
	}
}

func TestEveryAddressIsBothFamilies(t *testing.T) {
	ls, served, err := Listen([]string{"[::]:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer ls[0].Close()
	port := served[0].Port()
	for _, host := range []string{"127.0.0.1", "::1"} {
		c, err := net.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		c.Close()
	}
}
