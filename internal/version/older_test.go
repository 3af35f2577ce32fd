package version

import "testing"

func TestOlder(t *testing.T) {
	// Each is older than every one after it (the first ones are the example of
	// semver.org, section 11).
	order := []string{
		"0.0.0-dev", "0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2",
		"1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2",
	}
	for i, a := range order {
		for j, b := range order {
			if got := Older(a, b); got != (i < j) {
				t.Errorf("Older(%q, %q) = %v", a, b, got)
			}
		}
	}
	for _, c := range [][2]string{
		{"1.0.0+a", "1.0.0+b"}, {"1.0.0+b", "1.0.0+a"}, {"1", "1.0.0"}, {"1.0", "1"},
		{"", "1.0.0"}, {"1.0.0", ""}, {"main", "1.0.0"}, {"1.0.0", "main"}, {"1.2.3.4", "9"}, {"-1", "9"}, {"+1.0", "9"},
	} {
		if Older(c[0], c[1]) {
			t.Errorf("Older(%q, %q)", c[0], c[1])
		}
	}
}
