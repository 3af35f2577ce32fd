package name

import (
	"strings"
	"testing"
)

func TestANameIsOneOfADeclaration(t *testing.T) {
	long := strings.Repeat("a", 63)
	for s, want := range map[string]bool{
		"a": true, "web-1": true, "0": true, "a--b": true, long: true,
		"": false, "-a": false, "a-": false, "A": false, "a b": false, "a.b": false, "é": false, "a\nb": false, "aéb": false, long + "a": false,
	} {
		if Valid(s) != want {
			t.Errorf("%q: %v, want %v", s, !want, want)
		}
	}
}

func TestAHostnameBecomesAName(t *testing.T) {
	for s, want := range map[string]string{
		"Web_1.example.com": "web-1-example-com", "-x-": "x", "日本": "", "a..b": "a-b",
		strings.Repeat("a", 62) + ".b": strings.Repeat("a", 62),
	} {
		if got := Of(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestANumberKeepsTheNameWithinItsLength(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		want string
	}{{"a", 1, "a"}, {"a", 2, "a-2"}, {strings.Repeat("a", 63), 10, strings.Repeat("a", 60) + "-10"}} {
		if got := Numbered(c.name, c.n); got != c.want {
			t.Errorf("%q, %d: %q, want %q", c.name, c.n, got, c.want)
		}
	}
}
