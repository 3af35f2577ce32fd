//go:build machine

package bundle

import (
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// TestGNUTarWritesTheSameBundle: with the members in their order, and nothing of
// the one who packs, tar(1) writes the very bytes of mesh-release. Any other way
// is refused.
func TestGNUTarWritesTheSameBundle(t *testing.T) {
	judges(t, "tar")
	b := newBench(t)
	b.bundle()
	b.unpack("site.bundle.tar", "parts")
	b.put("order", b.must(b.ask("tar", "-tf", "site.bundle.tar")))
	plain := []string{"--format=ustar", "--mode=0644", "--mtime=@0", "--owner=:0", "--group=:0", "--numeric-owner", "-b1"}
	for _, c := range []struct {
		name    string
		options []string
		want    verdict
	}{
		{"plain, members in order", plain, accepts},
		{"with its usual blocks of 10 KiB", plain[:6], "not canonical: trailing bytes after the end"},
		{"with names of users", append(plain[:5:5], "-b1", "--owner=root:0"), "not canonical: the header of member"},
		{"with times", append(plain[:6:6], "-b1", "--mtime=@1"), "not canonical: the header of member"},
		{"in pax format", append([]string{"--format=pax"}, plain[1:]...), "not canonical"},
	} {
		b.must(b.ask("tar", append(c.options, "-C", "parts", "-T", "order", "-cf", "again.bundle.tar")...))
		ours := b.ours("again.bundle.tar")
		b.holds(c.name, ours, c.want)
		theirs := "writes another file"
		if b.get("again.bundle.tar") == b.get("site.bundle.tar") {
			theirs = "writes the same bytes"
		}
		if (theirs == "writes the same bytes") != (c.want == accepts) {
			t.Errorf("%s: %s", c.name, theirs)
		}
		tool.Verdict(t, "tar", "written again: "+c.name, theirs, b.said(ours))
	}
	b.put("order", strings.Replace(b.get("order"), "oci-layout\nindex.json\n", "index.json\noci-layout\n", 1))
	b.must(b.ask("tar", append(plain, "-C", "parts", "-T", "order", "-cf", "again.bundle.tar")...))
	ours := b.ours("again.bundle.tar")
	b.holds("another order", ours, "unexpected member")
	tool.Verdict(t, "tar", "written again: index.json first", "writes another file", b.said(ours))
}
