package declaration

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// What the texts of a declaration may be.
var (
	// nameRule is what may become part of a unit's name or a folder's: as in a
	// DNS label.
	nameRule = &rule{
		what: "a name (a-z, 0-9, '-', at most 63)", max: 63, like: "web",
		pattern: regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`),
	}
	// idRule holds the ids that people write and those the control plane makes
	// of them ("MODULE/ID").
	idRule = &rule{
		what: "an id (letters, digits, '.', '_', '-', '/', at most 200)", max: 200,
		pattern: regexp.MustCompile(`^[A-Za-z0-9._/-]+$`),
	}
	digestRule = &rule{what: "a sha256 digest", pattern: regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)}
	// accountRule is a user or group as useradd(8) takes it, or a number that
	// needs no account; 2^32-1 means "no change" to chown(2).
	accountRule = &rule{
		what: "an account", pattern: regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.-]{0,30}([A-Za-z0-9_.-]|\$)?|0|[1-9][0-9]{0,9})$`),
		check: func(s string) string {
			if s[0] >= '1' && s[0] <= '9' && len(s) == 10 && s >= "4294967295" {
				return fmt.Sprintf("%q is not an account number", s)
			}
			return ""
		},
	}
	modeRule = &rule{what: "an octal file mode", like: "0644", pattern: regexp.MustCompile(`^0?[0-7]{3,4}$`)}
	pathRule = &rule{
		check: pathFault, max: 4000,
		// The negative look-ahead, no part "." or "..", is ECMA's and not Go's.
		more: node{"pattern": `^(/(?!\.{1,2}(/|$))[^/\x00]{1,255})+$`},
	}
	// directoryRule is a path that may be the root.
	directoryRule = &rule{
		check: func(s string) string {
			if s == "/" {
				return ""
			}
			return pathFault(s)
		}, max: 4000,
		more: node{"pattern": `^/$|^(/(?!\.{1,2}(/|$))[^/\x00]{1,255})+$`},
	}
	// targetRule is what symlink(2) takes.
	targetRule = &rule{check: noNUL, max: 4095, more: plainText}
	// argumentRule is what execve(2) takes: MAX_ARG_STRLEN with its NUL.
	argumentRule = &rule{check: noNUL, max: 1<<17 - 1, empty: true, more: plainText}
	variableRule = &rule{what: "the name of a variable", pattern: regexp.MustCompile(`^[^=\x00]+$`), max: 1000}
	contentRule  = &rule{empty: true}
)

var plainText = node{"pattern": `^[^\x00]*$`}

func noNUL(s string) string {
	if strings.ContainsRune(s, 0) {
		return "holds a NUL byte"
	}
	return ""
}

// pathFault wants the one spelling of an absolute path, so that two resources
// about one file cannot differ in spelling.
func pathFault(p string) string {
	switch {
	case !strings.HasPrefix(p, "/"):
		return shown(p) + " is not absolute"
	case path.Clean(p) != p:
		return fmt.Sprintf("%s is not clean (want %s)", shown(p), shown(path.Clean(p)))
	case p == "/":
		return "is the root directory"
	case hasLongPart(p):
		return "has a part that is longer than the 255 bytes the kernel takes"
	}
	return noNUL(p)
}

func hasLongPart(p string) bool {
	for c := range strings.SplitSeq(p, "/") {
		if len(c) > 255 {
			return true
		}
	}
	return false
}

// words is a rule for what there is a list of.
func words[T ~string](list ...T) *rule {
	r := &rule{}
	for _, w := range list {
		r.words = append(r.words, string(w))
	}
	return r
}
