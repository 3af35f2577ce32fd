//go:build machine

package bundle

import (
	"strings"
	"testing"
)

// repository is where the bundle goes in the registry.
const repository = "127.0.0.1:5000/site:1"

// cosign verifies the bundle in the registry, with the release key of a folder and
// without a network.
func (r *registry) cosign(keys string) answer {
	r.t.Helper()
	return r.ask("cosign", "verify", "--key", keys+"/release.pub", "--insecure-ignore-tlog", repository)
}

// TestThroughARegistry: to a registry and back with oras, the bundle keeps its
// digest and its signature, cosign verifies it there, and what comes back is enough
// to write the same file again.
func TestThroughARegistry(t *testing.T) {
	judges(t, "oras", "cosign", "docker-registry", "skopeo", "tar")
	b := newBench(t)
	b.run(b.path("mesh-release"), "keys", "init", "strangers")
	bundle, images := b.withImages()
	const file = "images.bundle.tar"
	r := b.registry()

	b.holds("cp", r.ask("oras", "cp", "--no-tty", "--from-oci-layout", file+":bundle", "--to-plain-http", repository), accepts)
	b.judged("verify in a registry, after oras cp without -r", r.cosign("keys"), "no signatures found", file, accepts)
	b.judged("cp -r FILE:bundle to a registry", r.ask("oras", "cp", "-r", "--no-tty", "--from-oci-layout", file+":bundle", "--to-plain-http", repository), accepts, file, accepts)
	b.judged("verify in a registry, after oras cp -r", r.cosign("keys"), accepts, file, accepts)
	b.holds("verify, by a stranger's key", r.cosign("strangers"), "could not verify envelope")
	found := r.ask("oras", "manifest", "fetch", "--descriptor", "--plain-http", repository)
	if got := b.field(b.must(found), "digest"); got != bundle {
		t.Errorf("in the registry it is %s, not %s", got, bundle)
	}
	b.judged("restore --input FILE REGISTRY/REPOSITORY:bundle", r.ask("oras", "restore", "--no-tty", "--plain-http", "--input", file, "127.0.0.1:5000/restored:bundle"), accepts, file, accepts)
	// A container's name is no tag, so an image goes by its digest.
	b.judged("copy --preserve-digests FILE:"+app+" to a registry", r.ask("skopeo", "copy", "--preserve-digests", "--dest-tls-verify=false", "oci-archive:"+file+":"+app, "docker://127.0.0.1:5000/app:v1"), accepts, file, accepts)
	app1 := r.ask("oras", "manifest", "fetch", "--descriptor", "--plain-http", "127.0.0.1:5000/app:v1")
	if got := b.field(b.must(app1), "digest"); got != images[app] {
		t.Errorf("the image in the registry is %s, not %s", got, images[app])
	}

	b.judged("cp -r from a registry to DIR", r.ask("oras", "cp", "-r", "--no-tty", "--from-plain-http", repository, "--to-oci-layout", "back:bundle"), accepts, file, accepts)
	b.carried("back", "cp -r to a registry and back")
	b.assemble("back.bundle.tar", "back", b.entries("original")...)
	if b.get("back.bundle.tar") != b.get(file) {
		t.Error("written again from what came back, the bundle is another file")
	}
	// Another's tar is not the bundle, though all is in it.
	b.must(r.ask("oras", "backup", "--no-tty", "--plain-http", "--include-referrers", "--output", "backup.bundle.tar", repository))
	b.judged("inspect of what oras backup wrote", b.ask("skopeo", "inspect", "--raw", "oci-archive:backup.bundle.tar:1"), accepts, "backup.bundle.tar", `member "blobs/"`)
}

// TestTwoSignatures: while the release key changes, a bundle has one of the old key
// and one of the new, and who knows either verifies it, in a registry too.
func TestTwoSignatures(t *testing.T) {
	judges(t, "oras", "cosign", "docker-registry", "cp")
	b := newBench(t)
	bundle := b.bundle()
	const file = "site.bundle.tar"
	b.must(b.ask("cp", "-a", "keys", "old"))
	b.must(b.ask(b.path("mesh-release"), "keys", "rotate", "keys", "--release"))
	b.must(b.ask(b.path("mesh-release"), "bundle", "resign", file, "--keys", "keys", "--add"))
	r := b.registry()
	b.must(r.ask("oras", "cp", "-r", "--no-tty", "--from-oci-layout", file+":bundle", "--to-plain-http", repository))
	found := r.ask("oras", "discover", "--plain-http", repository)
	b.judged("discover in a registry: two signatures", found, accepts, file, accepts)
	if !strings.Contains(found.out, bundle) || strings.Count(found.out, "dsse-envelope") != 2 {
		t.Errorf("not two signatures\n%s", found.out)
	}
	b.judged("two signatures: verify by the old key", r.cosign("old"), accepts, file, accepts)
	b.judged("two signatures: verify by the new key", r.cosign("keys"), accepts, file, accepts)
}
