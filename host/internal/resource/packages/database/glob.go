package database

import (
	"regexp"
	"strings"
)

// A Glob is a pattern as fnmatch(3) without FNM_PATHNAME takes it, which is how
// pacman.conf(5) and dpkg.cfg's path-exclude are meant: "*" matches "/" too.
type Glob struct{ exp *regexp.Regexp }

// ParseGlob never fails: what is no pattern matches itself.
func ParseGlob(pattern string) Glob {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*':
			b.WriteString(`.*`)
		case '?':
			b.WriteString(`.`)
		case '[':
			end := strings.IndexByte(pattern[min(i+2, len(pattern)):], ']')
			if end < 0 {
				b.WriteString(`\[`)
				continue
			}
			class := pattern[i+1 : i+2+end]
			if class[0] == '!' {
				class = "^" + class[1:]
			}
			b.WriteString("[" + strings.NewReplacer(`\`, `\\`, `[`, `\[`).Replace(class) + "]")
			i += end + 2
		case '\\':
			if i+1 < len(pattern) {
				i++
			}
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	exp, err := regexp.Compile(b.String() + `\z`)
	if err != nil {
		exp = regexp.MustCompile(`\A` + regexp.QuoteMeta(pattern) + `\z`)
	}
	return Glob{exp}
}

// Match reports whether the whole name matches.
func (g Glob) Match(name string) bool { return g.exp.MatchString(name) }
