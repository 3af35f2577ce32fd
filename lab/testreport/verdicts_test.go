package testreport

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestVerdictsBecomeOneTable runs real tests of two packages at once, and has
// their lines mixed as go test mixes them.
func TestVerdictsBecomeOneTable(t *testing.T) {
	const head = "package m\n\nimport \"testing\"\n\n"
	streams := goTest(t, map[string]string{
		"one": head + `func TestA(t *testing.T) {
	t.Attr("verdict", "pacman | unsigned file | installs | refuses: no signature")
	t.Attr("owner", "gpg | not a verdict | a | b")
	t.Run("sub", func(t *testing.T) { t.Parallel(); t.Attr("verdict", "gpg | armored | accepts | refuses") })
}`,
		"two": head + `func TestB(t *testing.T) { t.Attr("verdict", "pacman | good | installs | accepts"); t.Skip("the rest") }`,
	})
	const want = `
  case           their answer  our answer
gpg
  armored        accepts       refuses
pacman
  good           installs      accepts
  unsigned file  installs      refuses: no signature
3 cases beside other programs

2 tests passed, 0 failed, 1 were skipped, in 2 packages
`
	lines := [2][]string{strings.SplitAfter(streams["one"], "\n"), strings.SplitAfter(streams["two"], "\n")}
	for seed := range uint64(20) {
		r, next := rand.New(rand.NewPCG(seed, 1)), [2]int{}
		var mixed strings.Builder
		for next[0] < len(lines[0]) || next[1] < len(lines[1]) {
			i := r.IntN(2)
			if next[i] == len(lines[i]) {
				i = 1 - i
			}
			mixed.WriteString(lines[i][next[i]])
			next[i]++
		}
		var out strings.Builder
		if ok, err := Write(&out, strings.NewReader(mixed.String()), nil); !ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
		if !strings.Contains(out.String(), want) {
			t.Fatalf("mixed by %d it says\n%s", seed, &out)
		}
	}
}

// TestOddVerdictsKeepTheTable: whatever a test says is one line of three columns
// that begin where the others' do.
func TestOddVerdictsKeepTheTable(t *testing.T) {
	odd := []string{
		"", "pacman", "pacman | case", "pacman | case | theirs", "pacman | case | theirs | a | b", "a|b | c|d | e | f", " |  |  | ",
		"gpg | \x1b[2J\t\u0000case\u202e | \u200btwo\u0301 | über", "gpg | " + strings.Repeat("long ", 100) + " | x | y", "gpg | %s %d | 100% | %!", "gpg | bad\xff | a | b",
	}
	var v verdicts
	for _, value := range odd {
		v.add(value)
	}
	v.add("gpg | plain | THEIRS | OURS")
	var out strings.Builder
	v.write(&out)
	text := out.String()
	var theirs, ours, rows int
	for line := range strings.Lines(text) {
		if strings.Contains(line, " plain ") {
			theirs, ours = strings.Index(line, "THEIRS"), strings.Index(line, "OURS")
		}
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "  ") {
			continue
		}
		rows++
		r := []rune(strings.TrimSuffix(line, "\n"))
		if string(r[theirs-2:theirs]) != "  " || r[theirs] == ' ' || string(r[ours-2:ours]) != "  " || r[ours] == ' ' {
			t.Errorf("its columns are not the others': %q", line)
		}
	}
	if rows != len(odd)+2 { // the head, the plain one
		t.Errorf("%d lines", rows)
	}
	for _, c := range []string{"\x1b", "\t", "\x00", "\u202e", "\u200b", "\u0301", "\xff", strings.Repeat("long ", 30)} {
		if strings.Contains(text, c) {
			t.Errorf("%q is in it", c)
		}
	}
	for _, s := range []string{"a | b\n", "a|b\n", "c|d", "100%", "%s %d", "%!", fmt.Sprint(len(odd)+1, " cases beside other programs\n")} {
		if !strings.Contains(text, s) {
			t.Errorf("%q is not in it", s)
		}
	}
	if !utf8.ValidString(text) || t.Failed() {
		t.Logf("it says:\n%s", text)
	}
}
