package repository

import (
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/release/internal/arch"
)

// TestValuesAreSpelledAsRepoAddDoes: the expected were written by bash 5.2 with
// repo-add's own lines.
func TestValuesAreSpelledAsRepoAddDoes(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "": "", "a  b   c": "a b c", " a ": "a", "a = b": "a = b",
		"a=": "a", "a==": "a==", "a b=": "a b=", "http://x/?a=": "http://x/?a", "= v": "= v", "=": "",
		"wide　and\u2003em": "wide and em", "no\u00a0break": "no\u00a0break", "größe": "größe",
	} {
		if got := word(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestPathsAreSpelledAsBsdtarDoes(t *testing.T) {
	for in, want := range map[string]string{
		"usr/größe 1": "usr/größe 1", `a\x2d`: `a\\x2d`, "a\tb": `a\tb`, "a\x01b": `a\001b`, "a\xffb": `a\377b`,
	} {
		if got := escape(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got := string(writeFiles([]string{"usr/b", ".PKGINFO", "usr/", "usr/B", "usr/b"})); got != "%FILES%\nusr/\nusr/B\nusr/b\n" {
		t.Errorf("files: %q", got)
	}
}

func TestMD5IsOnlyWrittenWhenAskedFor(t *testing.T) {
	m := arch.Meta{Name: "a", Base: "a", Version: "1-1", Arch: "any", BuildDate: 1, License: []string{"MIT", "X11"}}
	const head = "%FILENAME%\na-1-1-any.pkg.tar.zst\n\n%NAME%\na\n\n%BASE%\na\n\n%VERSION%\n1-1\n\n%CSIZE%\n7\n\n%ISIZE%\n0\n\n"
	const tail = "%SHA256SUM%\nsha\n\n%PGPSIG%\nAQI=\n\n%LICENSE%\nMIT\nX11\n\n%ARCH%\nany\n\n%BUILDDATE%\n1\n\n"
	if got := string(writeDesc(m, 7, "", "sha", []byte{1, 2})); got != head+tail {
		t.Errorf("%s", got)
	}
	if got := string(writeDesc(m, 7, "md", "sha", []byte{1, 2})); got != head+"%MD5SUM%\nmd\n\n"+tail || !strings.Contains(got, "md") {
		t.Errorf("%s", got)
	}
}
