package testreport

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A verdict is what another program and ours said of one case.
type verdict struct{ tool, name, theirs, ours string }

type verdicts []verdict

const (
	// between stands between the four parts of a verdict.
	between = " | "
	// widest keeps one long answer from making the table wider than a page.
	widest = 90
)

// add reads one verdict. A part that is missing is shown as missing, and what is
// too much stands in the last one: a row more is better than a case less.
func (v *verdicts) add(value string) {
	parts := strings.SplitN(value, between, 4)
	for i, p := range parts {
		parts[i] = cell(p)
	}
	for len(parts) < 4 {
		parts = append(parts, "?")
	}
	*v = append(*v, verdict{parts[0], parts[1], parts[2], parts[3]})
}

// cell makes one line of s, of what can be printed and has a width.
func cell(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) || unicode.Is(unicode.Mn, r) {
			return '?'
		}
		return r
	}, strings.TrimSpace(s))
	if s == "" {
		return "?"
	}
	if runes := []rune(s); len(runes) > widest {
		s = string(runes[:widest-1]) + "…"
	}
	return s
}

// write prints the table, which depends on what was said and not on which package
// was faster, and how many cases it has.
func (v verdicts) write(w io.Writer) {
	if len(v) == 0 {
		return
	}
	slices.SortFunc(v, func(a, b verdict) int {
		return slices.Compare([]string{a.tool, a.name, a.theirs, a.ours}, []string{b.tool, b.name, b.theirs, b.ours})
	})
	head := verdict{"", "case", "their answer", "our answer"}
	name, theirs := utf8.RuneCountInString(head.name), utf8.RuneCountInString(head.theirs)
	for _, r := range v {
		name, theirs = max(name, utf8.RuneCountInString(r.name)), max(theirs, utf8.RuneCountInString(r.theirs))
	}
	line := func(r verdict) { fmt.Fprintf(w, "  %-*s  %-*s  %s\n", name, r.name, theirs, r.theirs, r.ours) }
	fmt.Fprintln(w)
	line(head)
	for i, r := range v {
		if i == 0 || v[i-1].tool != r.tool {
			fmt.Fprintln(w, r.tool)
		}
		line(r)
	}
	fmt.Fprintf(w, "%d cases beside other programs\n", len(v))
}
