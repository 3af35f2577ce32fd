package arch

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A package as programs see it that are not ours.
type inspected struct {
	info    []string          // the lines of .PKGINFO, sorted, but comments and xdata
	mtree   map[string]string // attributes by path, with the defaults of /set
	listing []string          // bsdtar -tv
	install string
}

// inspect has bsdtar take a package apart.
func inspect(t testing.TB, path string) inspected {
	t.Helper()
	var p inspected
	for line := range strings.Lines(member(t, path, ".PKGINFO")) {
		// makepkg 6.0 writes no xdata yet.
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "xdata = ") {
			p.info = append(p.info, line)
		}
	}
	slices.Sort(p.info)
	z, err := gzip.NewReader(strings.NewReader(member(t, path, ".MTREE")))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	p.mtree = parseMtree(t, string(text))
	p.listing = strings.Split(strings.TrimSpace(must(t, "/", []string{"TZ=UTC"}, "bsdtar", "-tvf", path)), "\n")
	if slices.ContainsFunc(p.listing, func(l string) bool { return strings.HasSuffix(l, " .INSTALL") }) {
		p.install = member(t, path, ".INSTALL")
	}
	return p
}

func member(t testing.TB, path, name string) string {
	t.Helper()
	cmd := exec.Command("bsdtar", "-xOf", path, name)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("bsdtar -xO %s of %s: %v %s", name, path, err, errOut.String())
	}
	return string(out)
}

// parseMtree reads mtree(5) as libarchive writes it.
func parseMtree(t testing.TB, text string) map[string]string {
	t.Helper()
	defaults, found := map[string]string{}, map[string]string{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		attributes := map[string]string{}
		for k, v := range defaults {
			attributes[k] = v
		}
		if words[0] == "/set" {
			attributes = defaults
		}
		for _, w := range words[1:] {
			k, v, _ := strings.Cut(w, "=")
			attributes[k] = unescape(v)
		}
		if words[0] == "/set" {
			continue
		}
		var list []string
		for k, v := range attributes {
			list = append(list, k+"="+v)
		}
		slices.Sort(list)
		path := unescape(words[0])
		if found[path] != "" {
			t.Errorf(".MTREE names %q twice", path)
		}
		found[path] = strings.Join(list, " ")
	}
	if len(found) == 0 {
		t.Error(".MTREE is empty")
	}
	return found
}

// unescape reads \nnn.
func unescape(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		var c int
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := fmt.Sscanf(s[i+1:i+4], "%3o", &c); n == 1 && err == nil {
				out.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// differences says what two packages of the same input do not share. The sizes
// of .BUILDINFO, .MTREE and .PKGINFO say how they were built.
func differences(theirs, ours inspected) (list []string) {
	if !slices.Equal(theirs.info, ours.info) {
		list = append(list, fmt.Sprintf(".PKGINFO: makepkg\n%s\nours\n%s", strings.Join(theirs.info, "\n"), strings.Join(ours.info, "\n")))
	}
	for path, a := range theirs.mtree {
		if b := ours.mtree[path]; a != b && path != "./.BUILDINFO" && path != "./.PKGINFO" {
			list = append(list, fmt.Sprintf(".MTREE of %q: makepkg %q, ours %q", path, a, b))
		}
	}
	if len(theirs.mtree) != len(ours.mtree) {
		list = append(list, fmt.Sprintf(".MTREE has %d lines of makepkg's, %d of ours", len(theirs.mtree), len(ours.mtree)))
	}
	if a, b := content(theirs.listing), content(ours.listing); !slices.Equal(a, b) {
		list = append(list, fmt.Sprintf("listing: makepkg\n%s\nours\n%s", strings.Join(a, "\n"), strings.Join(b, "\n")))
	}
	return list
}

// content is a listing without sizes of metadata.
func content(listing []string) (lines []string) {
	for _, l := range listing {
		words := strings.Fields(l)
		if name := words[len(words)-1]; strings.HasPrefix(name, ".") && len(words) == 9 {
			words[4] = "-"
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// below is the part of a package that is in /usr/share/NAME.
func (p inspected) below(name string) inspected { return p.part(name, true) }

// without is the package without that part, and without its size, which that
// part is in.
func (p inspected) without(name string) inspected {
	q := p.part(name, false)
	for _, line := range p.info {
		if !strings.HasPrefix(line, "size = ") {
			q.info = append(q.info, line)
		}
	}
	return q
}

func (p inspected) part(name string, in bool) inspected {
	q := inspected{mtree: map[string]string{}}
	for path, a := range p.mtree {
		if strings.HasPrefix(path+"/", "./usr/share/"+name+"/") == in {
			q.mtree[path] = a
		}
	}
	for _, l := range p.listing {
		if strings.Contains(l, " usr/share/"+name+"/") == in {
			q.listing = append(q.listing, l)
		}
	}
	return q
}
