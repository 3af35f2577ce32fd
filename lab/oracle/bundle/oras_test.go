//go:build machine

package bundle

import (
	"os"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// TestOras: all of a bundle, from the file as it is, without a registry.
func TestOras(t *testing.T) {
	judges(t, "oras", "tar")
	b := newBench(t)
	bundle, images := b.withImages()
	const file = "images.bundle.tar"

	index := b.ask("oras", "manifest", "fetch", "--oci-layout", file+":bundle")
	b.judged("manifest fetch --oci-layout FILE:bundle", index, accepts, file, accepts)
	if got := digestOf(index.out); got != bundle {
		t.Errorf("oras finds %s, the bundle is %s\n%s", got, bundle, index.out)
	}
	d := b.ask("oras", "manifest", "fetch", "--descriptor", "--oci-layout", file+"@"+images[app])
	b.judged("manifest fetch --oci-layout FILE@DIGEST, an image", d, accepts, file, accepts)
	if got := b.field(d.out, "digest"); got != images[app] {
		t.Errorf("oras finds %s for %s", got, images[app])
	}
	found := b.ask("oras", "discover", "--oci-layout", file+":bundle")
	b.judged("discover --oci-layout FILE:bundle", found, accepts, file, accepts)
	if strings.Count(found.out, signatureType) != 1 {
		t.Errorf("it finds no signature, or more than one\n%s", found.out)
	}
	tags := strings.Fields(b.must(b.ask("oras", "repo", "tags", "--oci-layout", file)))
	if strings.Join(tags, " ") != strings.Join([]string{"bundle", app, db}, " ") {
		t.Errorf("its names are %q", tags)
	}
	b.judged("cp -r --from-oci-layout FILE:bundle --to-oci-layout DIR", b.ask("oras", "cp", "-r", "--no-tty", "--from-oci-layout", file+":bundle", "--to-oci-layout", "copy:bundle"), accepts, file, accepts)
	if got := b.entries("copy")[0].Digest; got != bundle {
		t.Errorf("the copy is %s", got)
	}
	b.carried("copy", "cp -r from FILE to DIR")
}

// carried says whether a copy of the bundle that was unpacked to "original" has its
// release roots: it cannot where they do not name the bundle as their subject, for
// nothing leads from it to them.
func (b *bench) carried(layout, how string) (roots bool) {
	b.t.Helper()
	have := map[string]bool{}
	for _, path := range b.files(layout + "/blobs") {
		have[strings.TrimPrefix(path, b.path(layout)+"/")] = true
	}
	roots = true
	for _, e := range b.entries("original") {
		if e.ArtifactType != rootType {
			continue
		}
		x := b.read("original", e)
		roots = x.Subject != nil
		for _, name := range []string{e.name(), x.Layers[0].name()} {
			if have[name] != roots {
				b.t.Errorf("%s: release roots: there %t, subject %t", how, have[name], roots)
			}
		}
	}
	said := "brings the release roots"
	if !roots {
		said = "leaves the release roots behind"
	}
	tool.Verdict(b.t, "oras", how, "accepts, "+said, "-")
	return roots
}

// TestOrasReadsAContentStore in place: what the host keeps can be carried to a
// registry when the host is the broken part, and cosign verifies it there.
func TestOrasReadsAContentStore(t *testing.T) {
	judges(t, "oras", "cosign", "docker-registry", "podman", "tar")
	b := newBench(t)
	b.engine()
	want, images := b.withImages()
	const file = "images.bundle.tar"
	if err := os.MkdirAll(b.path("machine/var/lib/nox-mesh"), 0o700); err != nil { // as installed
		t.Fatal(err)
	}
	// No containers are run here: what comes into the store is all that counts.
	if a := b.ask(b.path("mesh-host"), "--root", "machine", "bootstrap", "--trust", "keys", file); a.code != 0 && a.code != 4 {
		b.must(a)
	}
	const content = "machine/var/lib/nox-mesh/content"
	store := content + ":site-1-linux-" + architecture

	index := b.ask("oras", "manifest", "fetch", "--oci-layout", store)
	b.judged("content store: manifest fetch", index, accepts, file, accepts)
	if got := digestOf(index.out); got != want {
		t.Errorf("oras finds %s, the bundle is %s\n%s", got, want, index.out)
	}
	r := b.registry()
	b.judged("content store: cp -r to a registry", r.ask("oras", "cp", "-r", "--no-tty", "--from-oci-layout", store, "--to-plain-http", repository), accepts, file, accepts)
	b.judged("content store: verify what oras brought to a registry", r.cosign("keys"), accepts, file, accepts)

	// An image has no name there, and for a digest that index.json does not have oras
	// takes a mere file: so all of the bundle first, then a name for the image.
	copied := b.ask("oras", "cp", "--no-tty", "--from-oci-layout", store, "--to-oci-layout", "rescued:bundle")
	b.judged("content store: cp to DIR", copied, accepts, file, accepts)
	b.judged("tag DIR@DIGEST v1, an image that came from a content store", b.ask("oras", "tag", "--oci-layout", "rescued@"+images[app], "v1"), accepts, file, accepts)
	b.judged("pull oci:DIR:v1, an image that came from a content store", b.ask("podman", "pull", "oci:rescued:v1"), accepts, file, accepts)
	if got := b.must(b.ask("podman", "images", "--no-trunc", "--format", "{{.Digest}}")); strings.TrimSpace(got) != images[app] {
		t.Errorf("podman has %q, not %s", got, images[app])
	}
}
