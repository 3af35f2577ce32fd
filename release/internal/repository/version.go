package repository

import "strings"

// CompareVersions orders two versions as pacman does, vercmp(8): negative when a
// is older than b, 0 when neither is newer. Any bytes are compared; the release
// ("-1") only counts when both have one. It is alpm_pkg_vercmp of libalpm.
func CompareVersions(a, b string) int {
	if a == b {
		return 0
	}
	ea, va, ra, hasA := splitVersion(a)
	eb, vb, rb, hasB := splitVersion(b)
	if c := compareSegments(ea, eb); c != 0 {
		return c
	}
	if c := compareSegments(va, vb); c != 0 || !hasA || !hasB {
		return c
	}
	return compareSegments(ra, rb)
}

// splitVersion is parseEVR: digits up to a colon are the epoch, what follows the
// last "-" is the release.
func splitVersion(s string) (epoch, version, release string, hasRelease bool) {
	n := span(s, isDigit)
	epoch, version = "0", s
	if n < len(s) && s[n] == ':' {
		if n > 0 {
			epoch = s[:n]
		}
		version = s[n+1:]
		n = 0
	}
	// The release is looked for after the digits: "1-1" and "-1" have one.
	if i := strings.LastIndexByte(version[n:], '-'); i >= 0 {
		return epoch, version[:n+i], version[n+i+1:], true
	}
	return epoch, version, "", false
}

// compareSegments is rpmvercmp as libalpm has it: segments of digits or letters,
// one by one. The length of what separates them counts, its bytes do not.
func compareSegments(a, b string) int {
	if a == b {
		return 0
	}
	for a != "" && b != "" {
		sa, sb := span(a, isOther), span(b, isOther)
		a, b = a[sa:], b[sb:]
		if a == "" || b == "" {
			break
		}
		if sa != sb {
			return sign(sa - sb)
		}
		kind, number := isAlpha, isDigit(a[0])
		if number {
			kind = isDigit
		}
		na, nb := span(a, kind), span(b, kind)
		if nb == 0 { // a number is newer than letters
			if number {
				return 1
			}
			return -1
		}
		x, y := a[:na], b[:nb]
		if number {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if len(x) != len(y) {
				return sign(len(x) - len(y))
			}
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
		a, b = a[na:], b[nb:]
	}
	switch {
	case a == "" && b == "":
		return 0
	// What is left over in letters makes older (1.0rc1 < 1.0), the rest newer.
	case a == "" && !isAlpha(b[0]), a != "" && isAlpha(a[0]):
		return -1
	}
	return 1
}

func span(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isOther(c byte) bool { return !isDigit(c) && !isAlpha(c) }

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
