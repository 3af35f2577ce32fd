//go:build machine

package bundle

import (
	"regexp"
	"strings"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// A verdict is what is wanted of a program: that it accepts (""), or that it
// refuses and says why with these words. A refusal for another reason, such as a
// file that is not there, fails the test.
type verdict string

const accepts verdict = ""

var (
	// fault is the line in which each of the programs says what is wrong.
	fault = map[string]*regexp.Regexp{
		"cosign":    regexp.MustCompile(`(?m)^Error: (.*)$`),
		"ctr":       regexp.MustCompile(`(?m)^.*ctr: (.*)$`),
		"mesh-host": regexp.MustCompile(`(?m)^mesh-host: (.*)$`),
		"oras":      regexp.MustCompile(`(?m)^Error(?: from .* for "[^"]*")?: (.*)$`),
		"podman":    regexp.MustCompile(`(?ms)^Error: (.*)\z`),
		"skopeo":    regexp.MustCompile(`(?m)level=fatal msg="(.*)"$`),
	}
	// preamble is what a refusal of ours begins with, and passing what is of this
	// run alone: digests and folders.
	preamble = regexp.MustCompile(`^cannot verify "[^"]*": (cannot read bundle: )?`)
	passing  = regexp.MustCompile(`(sha256:)?[0-9a-f]{64}|(/var)?/tmp/[^ :"\\]*`)
)

// said is what a program said of a case, in one line.
func (b *bench) said(a answer) string {
	b.t.Helper()
	if a.code == 0 {
		return "accepts"
	}
	m := fault[a.program].FindStringSubmatch(a.err)
	if m == nil {
		b.t.Fatalf("%s: exit %d, and no fault\n%s%s", a.command, a.code, a.out, a.err)
	}
	why := preamble.ReplaceAllString(m[1], "")
	why = passing.ReplaceAllString(strings.Join(strings.Fields(strings.ReplaceAll(why, "|", "/")), " "), "…")
	if r := []rune(why); len(r) > 160 {
		why = string(r[:160]) + "…"
	}
	return "refuses: " + why
}

// holds holds an answer to what is wanted.
func (b *bench) holds(name string, a answer, want verdict) {
	b.t.Helper()
	if (a.code == 0) != (want == accepts) || !strings.Contains(a.err, string(want)) {
		b.t.Errorf("%s: exit %d, want %q\n%s\n%s%s", name, a.code, want, a.command, a.out, a.err)
	}
}

// judged holds the answer of a program of others, and that of mesh-host about the
// same bundle, to what is wanted, and puts both into the table.
func (b *bench) judged(name string, theirs answer, want verdict, bundle string, ours verdict) {
	b.t.Helper()
	we := b.ours(bundle)
	b.holds(name, theirs, want)
	b.holds(name, we, ours)
	tool.Verdict(b.t, theirs.program, name, b.said(theirs), b.said(we))
}

// ours is what mesh-host says of a bundle, told to trust the publisher's keys.
func (b *bench) ours(bundle string) answer {
	b.t.Helper()
	a := b.ask(b.path("mesh-host"), "bundle", "verify", "--trust", "keys", bundle)
	a.program = "mesh-host"
	if a.code != 0 && a.code != 3 {
		b.t.Fatalf("%s: exit %d\n%s", a.command, a.code, a.err)
	}
	return a
}
