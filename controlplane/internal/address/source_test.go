package address

import "testing"

func TestANetworkIsOneSource(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "x": "x",
	} {
		if got := Source(remote); got != want {
			t.Errorf("%s: %s", remote, got)
		}
	}
}
