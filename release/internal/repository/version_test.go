package repository

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
)

// The order is that of the page vercmp(8) and of pacman's own test suite
// (test/util/vercmptest.sh).
func TestVersionsAreOrderedAsPacmanDoes(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"1.5.0", "1.5.0", 0}, {"1.5.1", "1.5.0", 1},
		{"1.5.1", "1.5", 1},
		{"1.5.0-1", "1.5.0-1", 0}, {"1.5.0-1", "1.5.0-2", -1}, {"1.5.0-1", "1.5.1-1", -1}, {"1.5.0-2", "1.5.1-1", -1},
		{"1.5-1", "1.5.1-1", -1}, {"1.5-2", "1.5.1-1", -1}, {"1.5-2", "1.5.1-2", -1},
		{"1.5", "1.5-1", 0}, {"1.5-1", "1.5", 0}, {"1.1-1", "1.1", 0}, {"1.0-1", "1.1", -1}, {"1.1-1", "1.0", 1},
		{"1.5b-1", "1.5-1", -1}, {"1.5b", "1.5", -1}, {"1.5b-1", "1.5", -1}, {"1.5b", "1.5.1", -1},
		{"1.0a", "1.0alpha", -1}, {"1.0alpha", "1.0b", -1}, {"1.0b", "1.0beta", -1}, {"1.0beta", "1.0rc", -1}, {"1.0rc", "1.0", -1},
		{"1.5.a", "1.5", 1}, {"1.5.b", "1.5.a", 1}, {"1.5.1", "1.5.b", 1},
		{"1.5.b-1", "1.5.b", 0}, {"1.5-1", "1.5.b", -1},
		{"2.0", "2_0", 0}, {"2.0_a", "2_0.a", 0}, {"2.0a", "2.0.a", -1}, {"2___a", "2_a", 1},
		{"0:1.0", "0:1.0", 0}, {"0:1.0", "0:1.1", -1}, {"1:1.0", "0:1.0", 1}, {"1:1.0", "0:1.1", 1}, {"1:1.0", "2:1.1", -1},
		{"1:1.0", "0:1.0-1", 1}, {"1:1.0-1", "0:1.1-1", 1}, {"0:1.0", "1.0", 0}, {"0:1.0", "1.1", -1}, {"0:1.1", "1.0", 1},
		{"1:1.0", "1.0", 1}, {"1:1.0", "1.1", 1}, {"1:1.1", "1.1", 1},
		{"1.0.0rc1-1", "1.0.0-1", -1}, {"1.0.0beta2", "1.0.0rc1", -1}, {"10", "9", 1}, {"010", "10", 0},
	} {
		if got := CompareVersions(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := CompareVersions(c.b, c.a); got != -c.want {
			t.Errorf("%q, %q: %d, want %d", c.b, c.a, got, -c.want)
		}
	}
}

// TestVercmpAgrees asks the real vercmp about many random pairs, and about each
// twice: as they are, and with a small difference.
func TestVercmpAgrees(t *testing.T) {
	vercmp := realVercmp(t)
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		parts := []string{"0", "1", "2", "00", "01", "10", "9", "a", "b", "rc", "Z", "alpha", ".", "..", "_", "+", "-", "--", ":", "~", "^", "é", "\\", "@"}
		var b strings.Builder
		for range random.IntN(7) {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		return b.String()
	}
	n := 300
	if testing.Short() {
		n = 30
	}
	for i := range n {
		a, b := word(), word()
		if i%2 == 0 {
			cut := random.IntN(len(a) + 1)
			b = a[:cut] + word() + a[cut:]
		}
		compareWithReal(t, vercmp, a, b)
	}
}

func FuzzCompareVersions(f *testing.F) {
	f.Add("1.0-1", "1.0rc1-1")
	f.Add("1:", ":-")
	f.Fuzz(func(t *testing.T, a, b string) {
		if x, y := CompareVersions(a, b), CompareVersions(b, a); x < -1 || x > 1 || (a == b) && x != 0 {
			t.Errorf("%q, %q: %d, %d", a, b, x, y)
		}
		if strings.ContainsRune(a+b, 0) {
			return
		}
		if vercmp, err := exec.LookPath("vercmp"); err == nil {
			compareWithReal(t, vercmp, a, b)
		}
	})
}

func realVercmp(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("vercmp")
	if err != nil {
		t.Skip("vercmp is not here")
	}
	return path
}

// compareWithReal leaves out what vercmp takes for an option or for its help.
func compareWithReal(t *testing.T, vercmp, a, b string) {
	t.Helper()
	if strings.HasPrefix(a, "-h") || a == "--help" || a == "" || b == "" {
		return
	}
	out, err := exec.Command(vercmp, a, b).Output()
	if err != nil {
		t.Fatalf("vercmp %q %q: %v", a, b, err)
	}
	if want := strings.TrimSpace(string(out)); fmt.Sprint(CompareVersions(a, b)) != want {
		t.Errorf("%q, %q: %d, vercmp says %s", a, b, CompareVersions(a, b), want)
	}
}
