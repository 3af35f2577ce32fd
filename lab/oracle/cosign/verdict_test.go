package cosign

import (
	"fmt"
	"regexp"
	"strings"
)

// accepts and refuses are what a case expects of a program. An answer that is
// neither (wrong usage, a file that is not there) fails the test.
const (
	accepts = "accepts"
	refuses = "refuses"
)

var (
	cosignFault = regexp.MustCompile(`(?m)^Error: (.*)$`)
	// preamble is what a refusal of ours begins with: the command, and the file.
	preamble = regexp.MustCompile(`^mesh-release: (cannot verify [^:]*(:[0-9a-f]{64})?: )*`)
	// digests and folders are of this run alone.
	passing = regexp.MustCompile(` ?(sha256:)?[0-9a-f]{64}|/tmp/[^ "]*/`)
)

// theirs is what cosign said.
func (a answer) theirs(b *bench) (verdict, why string) {
	b.t.Helper()
	if a.code == 0 {
		return accepts, ""
	}
	m := cosignFault.FindStringSubmatch(a.out)
	if m == nil || strings.Contains(m[1], "no such file") || strings.Contains(m[1], "unknown flag") {
		b.t.Fatalf("%s: exit %d\n%s", a.command, a.code, a.out)
	}
	return refuses, m[1]
}

// ours is what mesh-release said.
func (a answer) ours(b *bench) (verdict, why string) {
	b.t.Helper()
	if a.code == 0 {
		return accepts, ""
	}
	line, _, _ := strings.Cut(a.out, "\n")
	if a.code != 3 {
		b.t.Fatalf("%s: exit %d\n%s", a.command, a.code, a.out)
	}
	return refuses, preamble.ReplaceAllString(line, "")
}

// judged holds both answers to what is wanted and puts them into the table that
// lab/testreport prints.
func (b *bench) judged(name string, theirs, ours answer, wantTheirs, wantOurs string) {
	b.t.Helper()
	they, theirWhy := theirs.theirs(b)
	we, ourWhy := ours.ours(b)
	if they != wantTheirs {
		b.t.Errorf("%s: cosign %s, want %s\n%s\n%s", name, they, wantTheirs, theirs.command, theirs.out)
	}
	if we != wantOurs {
		b.t.Errorf("%s: mesh-release %s, want %s\n%s\n%s", name, we, wantOurs, ours.command, ours.out)
	}
	said := func(verdict, why string) string {
		why = passing.ReplaceAllString(strings.ReplaceAll(why, " | ", "; "), "")
		if why == "" {
			return verdict
		}
		return verdict + ": " + why
	}
	b.t.Attr("verdict", fmt.Sprintf("cosign %s | %s | %s | %s", shared.version, name, said(they, theirWhy), said(we, ourWhy)))
}
