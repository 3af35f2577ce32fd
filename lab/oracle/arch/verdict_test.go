package arch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// judged is what pacman did with a package.
func judged(out string, err error) string {
	if err == nil {
		return "installs"
	}
	for line := range strings.Lines(out) {
		// It would look for a key it misses, and says first that it may not.
		why, is := strings.CutPrefix(line, "error: ")
		if !is || strings.Contains(why, "keyring is not writable") || strings.Contains(why, "looked up remotely") {
			continue
		}
		if at := strings.Index(why, "': "); at > 0 { // of 'PATH'
			why = filepath.Base(why[:at]) + why[at+1:]
		}
		return "refuses: " + strings.TrimSpace(why)
	}
	return "refuses"
}

// compared says in a word what differences returned.
func compared(found []string, why string) string {
	if len(found) == 0 {
		return "the same"
	}
	var kinds []string
	for _, f := range found {
		what, _, _ := strings.Cut(f, ": makepkg")
		kinds = append(kinds, what)
	}
	slices.Sort(kinds)
	said := "differs: " + strings.Join(kinds, ", ")
	if why != "" {
		said = fmt.Sprintf("differs: %s (%s)", strings.Join(kinds, ", "), why)
	}
	return said
}

// line is the one that p says of key in its .PKGINFO.
func (p inspected) line(key string) string {
	for _, l := range p.info {
		if strings.HasPrefix(l, key+" = ") {
			return l
		}
	}
	return "no " + key
}
