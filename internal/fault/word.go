package fault

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain is what no shell takes for anything else than itself.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-]+$`)

// Word writes s, the name of a file for instance, as one word of a command that a
// remedy has for a person to copy: quoted where a shell would read it otherwise, and
// so that it is all there is when what cannot be printed is taken out of the line.
func Word(s string) string {
	if plain.MatchString(s) {
		return s
	}
	printable := utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	if printable {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	// $'…' is of POSIX.1-2024; bash, zsh, busybox and FreeBSD's sh have it.
	out := []byte("$'")
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ' || c >= 0x7f:
			out = append(out, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		default:
			out = append(out, c)
		}
	}
	return string(append(out, '\''))
}
