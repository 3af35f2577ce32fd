// Package name is the rule of names in a mesh: of nodes, of modules, of tags. It
// is that of a declaration's name, which a node's and a module's become.
package name

import (
	"fmt"
	"strings"
)

// Max is how long a name may be.
const Max = 63

// Rule is the rule in words.
const Rule = "a-z, 0-9 and '-', at most 63, and no '-' at an end"

// Valid says whether s is a name.
func Valid(s string) bool {
	return s != "" && len(s) <= Max && s[0] != '-' && s[len(s)-1] != '-' &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Of makes a name of a hostname: lower case, one '-' for whatever a name may
// not hold. It may be empty.
func Of(hostname string) string {
	var b strings.Builder
	dash := false
	for _, c := range strings.ToLower(hostname) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			dash = true
			continue
		}
		if dash && b.Len() > 0 {
			b.WriteByte('-')
		}
		dash = false
		b.WriteRune(c)
	}
	s := b.String()
	return strings.TrimRight(s[:min(len(s), Max)], "-")
}

// Numbered is name itself for 1, and name with "-N" behind it, within Max, for
// more.
func Numbered(name string, n int) string {
	if n < 2 {
		return name
	}
	suffix := fmt.Sprintf("-%d", n)
	return name[:min(len(name), Max-len(suffix))] + suffix
}
