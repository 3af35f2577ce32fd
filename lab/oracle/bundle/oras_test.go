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
	if strings.Count(found.out, signatureType) != 1 || strings.Count(found.out, rootType) != 1 {
		t.Errorf("it finds not one signature and one chain of release roots\n%s", found.out)
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

// carried holds that a copy of the bundle that was unpacked to "original" has all
// that was there: its release roots, too, for they name it as their subject.
func (b *bench) carried(layout, how string) {
	b.t.Helper()
	roots := 0
	for _, e := range b.entries("original") {
		if e.ArtifactType == rootType {
			roots++
		}
	}
	if roots != 1 {
		b.t.Errorf("the bundle has %d chains of release roots, so this tests nothing", roots)
	}
	for _, path := range b.files("original/blobs") {
		if name := strings.TrimPrefix(path, b.path("original")+"/"); !b.exists(layout + "/" + name) {
			b.t.Errorf("%s: %s is left behind", how, name)
		}
	}
	tool.Verdict(b.t, "oras", how, "brings all, signatures and release roots too", "-")
}

// TestOrasReadsAContentStore in place: what the host keeps can be carried to a
// registry when the host is the broken part, and cosign verifies it there.
func TestOrasReadsAContentStore(t *testing.T) {
	judges(t, "oras", "cosign", "docker-registry", "podman", "skopeo", "tar")
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

	// An image has its name there, or is taken by its digest, with all of it.
	b.judged("content store: inspect oci:STORE:NAME, an image", b.ask("skopeo", "inspect", "oci:"+content+":"+app), accepts, file, accepts)
	b.judged("content store: cp STORE@DIGEST, an image, to DIR", b.ask("oras", "cp", "--no-tty", "--from-oci-layout", content+"@"+images[db], "--to-oci-layout", "rescued:v2"), accepts, file, accepts)
	if layer := b.layer("original", images[db]); !b.exists("rescued/" + layer) {
		t.Errorf("the copy has no %s", layer)
	}
	for name, from := range map[string]string{app: "oci:" + content + ":" + app, db: "oci:rescued:v2"} {
		b.judged("content store: pull oci:STORE:NAME, an image, or what oras copied", b.ask("podman", "pull", from), accepts, file, accepts)
		if got := b.must(b.ask("podman", "images", "--no-trunc", "--format", "{{.Digest}}")); !strings.Contains(got, images[name]) {
			t.Errorf("podman has %q, not %s", got, images[name])
		}
	}

	// It is enough to make the bundle's file again, where its publisher is gone.
	b.must(b.ask(b.path("mesh-release"), "bundle", "import", store, "--trust", "keys", "--out", "again.bundle.tar"))
	if b.get("again.bundle.tar") != b.get(file) {
		t.Error("from the content store, the bundle is another file")
	}
}
