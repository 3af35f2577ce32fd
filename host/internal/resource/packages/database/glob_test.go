package database

import "testing"

func TestGlobsMatchAsFnmatchDoes(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"linux", "linux", true}, {"linux", "linux-lts", false}, {"linux*", "linux-lts", true},
		{"usr/share/doc/*", "usr/share/doc/a/b", true}, {"/usr/share/locale/??/*", "/usr/share/locale/de/x", true},
		{"/usr/share/locale/??/*", "/usr/share/locale/pt_BR/x", false}, {"lib[abc]", "libb", true}, {"lib[!abc]", "libb", false},
		{"lib[!abc]", "libd", true}, {"lib[]x]", "lib]", true}, {"lib[", "lib[", true}, {`a\*`, "a*", true}, {`a\*`, "ab", false}, {"a.c", "abc", false},
		{"[z-a]", "[z-a]", true}, // no range: as fnmatch(3), it is no pattern
	} {
		if got := ParseGlob(c.pattern).Match(c.name); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.name, got)
		}
	}
}

func TestPathsCannotLeaveTheRoot(t *testing.T) {
	for name, want := range map[string]string{
		"usr/bin/x": "/usr/bin/x", "./usr/bin/x": "/usr/bin/x", "/usr/lib/": "/usr/lib", "../../etc/x": "/etc/x", "a/../../../etc/x": "/etc/x", "": "/",
	} {
		if got := Clean(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
