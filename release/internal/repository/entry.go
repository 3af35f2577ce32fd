package repository

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nox-mesh/nox-mesh/release/internal/arch"
)

// An entry is what the databases say of one package.
type entry struct {
	Package
	signature   []byte
	built       time.Time
	desc, files []byte
}

// folder is the name of the entry in the databases.
func (e *entry) folder() string { return e.Name + "-" + e.Version }

// parseEntry reads the "desc" and "files" of the entry called folder. files is
// nil when it comes from "db".
func parseEntry(folder string, desc, files []byte) (*entry, error) {
	values, err := parseDesc(desc)
	if err != nil {
		return nil, err
	}
	e := &entry{desc: desc, files: files}
	var sum, signature, size, built string
	for field, to := range map[string]*string{
		"NAME": &e.Name, "VERSION": &e.Version, "ARCH": &e.Arch, "FILENAME": &e.File,
		"CSIZE": &size, "SHA256SUM": &sum, "PGPSIG": &signature, "BUILDDATE": &built,
	} {
		v := values[field]
		if len(v) != 1 {
			return nil, fmt.Errorf("it has %d values of %%%s%%, not one", len(v), field)
		}
		*to = v[0]
	}
	p, err := parseFileName(e.File)
	if err != nil {
		return nil, err
	}
	if p.Name != e.Name || p.Version != e.Version || p.Arch != e.Arch || folder != e.folder() {
		return nil, fmt.Errorf("file name, name, version and architecture do not fit each other")
	}
	if e.Size, err = parseNumber(size); err != nil {
		return nil, err
	}
	seconds, err := parseNumber(built)
	if err != nil {
		return nil, err
	}
	e.built = time.Unix(seconds, 0)
	if b, err := hex.DecodeString(sum); err != nil || len(b) != 32 || strings.ToLower(sum) != sum {
		return nil, fmt.Errorf("%.80q is not a SHA-256", sum)
	}
	e.SHA256, e.Listed = sum, true
	e.signature, err = base64.StdEncoding.Strict().DecodeString(signature)
	if err != nil || len(e.signature) > maxSignature {
		return nil, fmt.Errorf("%%PGPSIG%% is not a signature in base64")
	}
	if files != nil {
		return e, parseFiles(files)
	}
	return e, nil
}

// parseNumber reads a number as it is written, and no other spelling.
func parseNumber(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 48)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("%.80q is not a number", s)
	}
	return n, nil
}

// parseDesc reads what repo-add writes: known fields, each once, each with its
// lines and an empty one.
func parseDesc(b []byte) (map[string][]string, error) {
	if !plain(b) {
		return nil, fmt.Errorf("\"desc\" is not plain text")
	}
	values := map[string][]string{}
	rest := string(b)
	for rest != "" {
		block, after, ok := strings.Cut(rest, "\n\n")
		if !ok {
			return nil, fmt.Errorf("\"desc\" does not end with an empty line")
		}
		rest = after
		lines := strings.Split(block, "\n")
		field := strings.Trim(lines[0], "%")
		switch {
		case lines[0] != "%"+field+"%" || !slices.Contains(fields, field):
			return nil, fmt.Errorf("%.80q is not a field of \"desc\"", lines[0])
		case values[field] != nil:
			return nil, fmt.Errorf("%%%s%% is there twice", field)
		case len(lines) < 2 || slices.Contains(lines[1:], ""):
			return nil, fmt.Errorf("%%%s%% has an empty value", field)
		}
		values[field] = lines[1:]
	}
	return values, nil
}

// parseFiles holds the rules of "files": its head, then sorted lines.
func parseFiles(b []byte) error {
	text, ok := bytes.CutPrefix(b, []byte(filesHead))
	if !ok || !plain(b) || len(text) > 0 && text[len(text)-1] != '\n' {
		return fmt.Errorf("\"files\" is not a list of files")
	}
	last := ""
	for line := range strings.Lines(string(text)) {
		if line == "\n" || line <= last {
			return fmt.Errorf("\"files\" is not sorted, or has an empty line")
		}
		last = line
	}
	return nil
}

// plain reports whether b is UTF-8 without control characters but line breaks.
func plain(b []byte) bool {
	return utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool { return r != '\n' && unicode.IsControl(r) })
}

// parseFileName reads NAME-VERSION-REL-ARCH.pkg.tar.zst.
func parseFileName(file string) (Package, error) {
	bad := func() (Package, error) {
		return Package{}, fmt.Errorf("%.200q is not NAME-VERSION-REL-ARCH%s", file, arch.Extension)
	}
	stem, ok := strings.CutSuffix(file, arch.Extension)
	part := strings.Split(stem, "-")
	n := len(part)
	if !ok || len(file) > 250 || n < 4 {
		return bad()
	}
	p := Package{Name: strings.Join(part[:n-3], "-"), Version: part[n-3] + "-" + part[n-2], Arch: part[n-1], File: file}
	if _, err := arch.ParseVersion(p.Version); err != nil || !isName(p.Name) || !isName(p.Arch) {
		return bad()
	}
	return p, nil
}

// isName holds the grammar of names, PKGBUILD(5).
func isName(s string) bool {
	return s != "" && s[0] != '-' && s[0] != '.' && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("@._+-", r) && (r >= utf8.RuneSelf || isOther(byte(r)))
	}) < 0
}
