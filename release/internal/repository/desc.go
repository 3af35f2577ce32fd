package repository

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nox-mesh/nox-mesh/release/internal/arch"
)

// fields are what a "desc" may hold, in the order in which repo-add writes them.
var fields = []string{
	"FILENAME", "NAME", "BASE", "VERSION", "DESC", "GROUPS", "CSIZE", "ISIZE", "MD5SUM", "SHA256SUM", "PGPSIG",
	"URL", "LICENSE", "ARCH", "BUILDDATE", "PACKAGER", "REPLACES", "CONFLICTS", "PROVIDES",
	"DEPENDS", "OPTDEPENDS", "MAKEDEPENDS", "CHECKDEPENDS",
}

// writeDesc returns the "desc" of a package. md5 may be "".
func writeDesc(m arch.Meta, size int64, md5, sha256 string, signature []byte) []byte {
	number := func(n int64) []string { return []string{strconv.FormatInt(n, 10)} }
	values := map[string][]string{
		"FILENAME": {m.FileName()}, "NAME": {m.Name}, "BASE": {m.Base}, "VERSION": {m.Version},
		"CSIZE": number(size), "ISIZE": number(m.Size), "MD5SUM": {md5}, "SHA256SUM": {sha256},
		"PGPSIG": {base64.StdEncoding.EncodeToString(signature)},
		"ARCH":   {m.Arch}, "BUILDDATE": number(m.BuildDate),
		"DESC": words(m.Desc), "URL": words(m.URL), "PACKAGER": words(m.Packager),
		"GROUPS": words(m.Groups...), "LICENSE": words(m.License...), "REPLACES": words(m.Replaces...),
		"CONFLICTS": words(m.Conflicts...), "PROVIDES": words(m.Provides...), "DEPENDS": words(m.Depends...),
		"OPTDEPENDS": words(m.OptDepends...), "MAKEDEPENDS": words(m.MakeDepends...), "CHECKDEPENDS": words(m.CheckDepends...),
	}
	var b bytes.Buffer
	for _, f := range fields {
		// repo-add asks the first value whether there is any.
		if v := values[f]; len(v) > 0 && v[0] != "" {
			fmt.Fprintf(&b, "%%%s%%\n%s\n\n", f, strings.Join(v, "\n"))
		}
	}
	return b.Bytes()
}

// words returns the values as repo-add's "read" and "declare" leave them.
func words(values ...string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = word(v)
	}
	return out
}

// word spells a value as repo-add does: `IFS=' =' read -r var val` takes one "="
// from the end of a value of one word (bash's rule for a delimiter after the last
// field), then each run of white space becomes one blank.
func word(v string) string {
	v = strings.Trim(v, " \t")
	if one, ok := strings.CutSuffix(v, "="); ok {
		if one = strings.TrimRight(one, " "); !strings.ContainsAny(one, " =") {
			v = one
		}
	}
	var b strings.Builder
	blank := false
	for _, r := range v {
		if space := isSpace(r); space {
			blank = true
			continue
		} else if blank {
			b.WriteByte(' ')
		}
		blank = false
		b.WriteRune(r)
	}
	if blank {
		b.WriteByte(' ')
	}
	return b.String()
}

// isSpace is iswspace(3) in a UTF-8 locale: no blank that must not break a line.
func isSpace(r rune) bool {
	switch r {
	case '\u0085', '\u00a0', '\u2007', '\u202f':
		return false
	}
	return unicode.IsSpace(r)
}

// writeFiles returns the "files" of a package: as bsdtar -t prints the paths,
// sorted by bytes, without what starts with a dot.
func writeFiles(paths []string) []byte {
	var lines []string
	for _, p := range paths {
		if !strings.HasPrefix(p, ".") {
			lines = append(lines, escape(p))
		}
	}
	slices.Sort(lines)
	var b bytes.Buffer
	b.WriteString(filesHead)
	for _, l := range slices.Compact(lines) {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

const filesHead = "%FILES%\n"

// escape spells a path as bsdtar(1) prints it in a UTF-8 locale.
func escape(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRuneInString(p[i:])
		if r != utf8.RuneError && r != '\\' && unicode.IsGraphic(r) {
			b.WriteString(p[i : i+n])
			i += n
			continue
		}
		for _, c := range []byte(p[i : i+n]) {
			if j := strings.IndexByte("\\\a\b\n\r\t\v", c); j >= 0 {
				b.WriteByte('\\')
				b.WriteByte(`\abnrtv`[j])
			} else {
				fmt.Fprintf(&b, "\\%03o", c)
			}
		}
		i += n
	}
	return b.String()
}
