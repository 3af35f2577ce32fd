package version

import (
	"cmp"
	"strconv"
	"strings"
)

// Older reports whether version have comes before want, by the precedence of
// semver.org (section 11): 1.0.0-rc.1 is older than 1.0.0, and what follows a
// plus does not count. Numbers that are left out are zero. A version that is
// not three dotted numbers is not older than any, nor any older than it.
func Older(have, want string) bool {
	h, hpre, ok := parse(have)
	w, wpre, ok2 := parse(want)
	if !ok || !ok2 {
		return false
	}
	for i := range h {
		if h[i] != w[i] {
			return h[i] < w[i]
		}
	}
	switch {
	case hpre == "" || wpre == "":
		return hpre != "" && wpre == ""
	default:
		return comparePre(strings.Split(hpre, "."), strings.Split(wpre, ".")) < 0
	}
}

func parse(s string) (numbers [3]uint64, pre string, ok bool) {
	s, _, _ = strings.Cut(s, "+")
	s, pre, _ = strings.Cut(s, "-")
	parts := strings.Split(s, ".")
	if len(parts) > len(numbers) {
		return numbers, "", false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 64)
		if err != nil {
			return numbers, "", false
		}
		numbers[i] = n
	}
	return numbers, pre, true
}

// comparePre compares pre-releases: numbers by value and before words, a
// shorter one before a longer one that begins with it.
func comparePre(a, b []string) int {
	for i := range min(len(a), len(b)) {
		n, err := strconv.ParseUint(a[i], 10, 64)
		m, err2 := strconv.ParseUint(b[i], 10, 64)
		var c int
		switch {
		case err == nil && err2 == nil:
			c = cmp.Compare(n, m)
		case err == nil:
			c = -1
		case err2 == nil:
			c = 1
		default:
			c = strings.Compare(a[i], b[i])
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}
