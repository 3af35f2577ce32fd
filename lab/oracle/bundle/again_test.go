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

// TestToARegistryAndBackIsTheSameFile: with two signatures, a chain of two roots and
// images, through oras, a registry and tar.
func TestToARegistryAndBackIsTheSameFile(t *testing.T) {
	judges(t, "oras", "docker-registry", "tar", "cp")
	b := newBench(t)
	bundle, _ := b.withImages()
	const file = "images.bundle.tar"
	b.must(b.ask(b.path("mesh-release"), "keys", "rotate", "keys", "--release"))
	b.must(b.ask(b.path("mesh-release"), "bundle", "resign", file, "--keys", "keys", "--add"))
	b.must(b.ask(b.path("mesh-release"), "keys", "export", "keys", "--out", "public"))
	r := b.registry()
	b.must(r.ask("oras", "cp", "-r", "--no-tty", "--from-oci-layout", file+":bundle", "--to-plain-http", repository))
	b.must(r.ask("oras", "cp", "-r", "--no-tty", "--from-plain-http", repository, "--to-oci-layout", "back:bundle"))
	b.must(b.ask("oras", "cp", "-r", "--no-tty", "--from-oci-layout", file+":bundle", "--to-oci-layout", "copy:v7"))
	b.unpack(file, "unpacked")
	for _, c := range []struct{ how, layout string }{
		{"oras cp -r to a registry and back", "back:bundle"},
		{"oras cp -r to a registry and back, by digest", "back@" + bundle},
		{"oras cp -r to DIR", "copy:v7"},
		{"tar -xf", "unpacked"},
	} {
		// Who has no secret key makes it.
		b.must(b.ask("env", "-u", "NOX_PASSPHRASE_FILE", b.path("mesh-release"), "bundle", "import", c.layout, "--trust", "public", "--out", "again.bundle.tar"))
		same := "the same bytes"
		if b.get("again.bundle.tar") != b.get(file) {
			same = "another file"
			t.Errorf("%s: another file", c.how)
		}
		tool.Verdict(t, "oras", "bundle import after "+c.how, same, b.said(b.ours("again.bundle.tar")))
	}

	// One that was brought by another, without what refers to it, is no bundle.
	b.must(b.ask("oras", "cp", "--no-tty", "--from-oci-layout", file+":bundle", "--to-oci-layout", "bare:bundle"))
	bare := b.ask(b.path("mesh-release"), "bundle", "import", "bare", "--trust", "public", "--out", "bare.bundle.tar")
	if bare.code != 3 || !strings.Contains(bare.err, "no signature") || b.exists("bare.bundle.tar") {
		t.Errorf("without its signatures: exit %d\n%s", bare.code, bare.err)
	}
}
