package fault

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"
)

// TestAWordIsOneWordOfAShell asks shells what they read.
func TestAWordIsOneWordOfAShell(t *testing.T) {
	for _, s := range []string{
		"keys", "a b", "", "it's", `a"b`, "$(id)", "`id`", "a;b", "~root", "*", "!x", "#", "ünï", "a\\b",
		"new\nline", "\xc2\x9b31m", "\xff", "\u202e'\\", "\x7f1", "a=b",
	} {
		word := Word(s)
		for _, r := range word {
			if !unicode.IsPrint(r) {
				t.Errorf("%q has %U", word, r)
			}
		}
		for _, shell := range []string{"bash", "sh"} {
			if shell == "sh" && strings.HasPrefix(word, "$'") {
				continue // dash has no $'…' yet
			}
			out, err := exec.CommandContext(t.Context(), shell, "-c", "printf '<%s>' "+word).Output()
			if err != nil || string(out) != "<"+s+">" {
				t.Errorf("%s reads %s as %q, %v, want %q", shell, word, out, err, s)
			}
		}
	}
	if got := Word("/srv/keys-2.0"); got != "/srv/keys-2.0" {
		t.Errorf("%s is quoted for nothing", got)
	}
}
