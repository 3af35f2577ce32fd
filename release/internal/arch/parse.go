package arch

import (
	"strconv"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// parsePkgInfo reads a .PKGINFO, alpm-pkginfo(5): every field known, those that
// are one only once, and what becomes a file name within the grammar.
func parsePkgInfo(b []byte) (Meta, error) {
	bad := func(format string, args ...any) (Meta, error) {
		return Meta{}, fault.Refusedf("cannot read package: .PKGINFO: "+format, args...)
	}
	text, ok := strings.CutSuffix(string(b), "\n")
	if !ok {
		return bad("it does not end with a line break")
	}
	var m Meta
	fields := map[string]field{}
	for _, f := range m.fields() {
		fields[f.key] = f
	}
	numbers := map[string]*int64{"builddate": &m.BuildDate, "size": &m.Size}
	seen := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, " = ")
		if !ok {
			return bad("%.80q is no field", line)
		}
		f, isText := fields[key]
		n, isNumber := numbers[key]
		if !isText && !isNumber {
			return bad("there is no field %.80q", key)
		}
		if seen[key] && f.many == nil {
			return bad("%q is there twice", key)
		}
		seen[key] = true
		switch {
		case isNumber:
			i, err := strconv.ParseInt(value, 10, 64)
			if err != nil || i < 0 || strconv.FormatInt(i, 10) != value {
				return bad("the %s %.80q is no number", key, value)
			}
			*n = i
		case f.one != nil:
			*f.one = value
		default:
			*f.many = append(*f.many, value)
		}
	}
	for _, key := range []string{"pkgname", "pkgver", "builddate", "packager", "size", "arch"} {
		if !seen[key] {
			return bad("there is no %s", key)
		}
	}
	if m.Base == "" {
		m.Base = m.Name
	}
	if err := m.checkValues(); err != nil {
		return bad("%w", err)
	}
	if _, err := ParseVersion(m.Version); err != nil {
		return bad("%w", err)
	}
	if err := m.checkNames(); err != nil {
		return bad("%w", err)
	}
	return m, nil
}
