//go:build machine

package bundle

import (
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// TestSkopeo: the bundle index by its name, each image by its own; a copy of an
// image keeps its digest.
func TestSkopeo(t *testing.T) {
	judges(t, "skopeo", "tar")
	b := newBench(t)
	bundle, images := b.withImages()
	const file, archive = "images.bundle.tar", "oci-archive:images.bundle.tar"

	raw := b.ask("skopeo", "inspect", "--raw", archive+":bundle")
	b.judged("inspect --raw FILE:bundle", raw, accepts, file, accepts)
	if got := digestOf(raw.out); got != bundle {
		t.Errorf("skopeo finds %s, the bundle is %s\n%s", got, bundle, raw.out)
	}
	b.judged("inspect FILE:bundle, as an image", b.ask("skopeo", "inspect", archive+":bundle"), "unsupported image-specific operation on artifact", file, accepts)
	b.judged("inspect FILE", b.ask("skopeo", "inspect", archive), "more than one image in oci", file, accepts)
	for name, want := range images {
		a := b.ask("skopeo", "inspect", archive+":"+name)
		b.judged("inspect FILE:"+name, a, accepts, file, accepts)
		if got := b.field(a.out, "Digest"); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
	b.judged("copy --preserve-digests FILE:"+app, b.ask("skopeo", "copy", "--preserve-digests", archive+":"+app, "oci:copy:app"), accepts, file, accepts)
	if got := b.entries("copy")[0].Digest; got != images[app] {
		t.Errorf("the copy is %s, not %s", got, images[app])
	}

	// All of a bundle it copies, blob by blob, each by its digest; the index it
	// writes anew.
	b.holds("copy --all", b.ask("skopeo", "copy", "--all", archive+":bundle", "oci:all:bundle"), accepts)
	anew := "accepts, and writes the same index"
	if got := b.entries("all")[0].Digest; got != bundle {
		anew = "accepts, and writes another index: without artifact types"
		if x := b.read("all", descriptor{Digest: got}); x.ArtifactType != "" {
			t.Errorf("it kept the artifact type, so why is it another? %+v", x)
		}
	}
	for _, image := range images {
		if !b.exists("all/" + b.layer("all", image)) {
			t.Errorf("no layer of %s in the copy", image)
		}
	}
	tool.Verdict(t, "skopeo", "copy --all FILE:bundle", anew, "-")
	b.judged("copy --all --preserve-digests FILE:bundle", b.ask("skopeo", "copy", "--all", "--preserve-digests", archive+":bundle", "oci:kept:bundle"),
		"we cannot modify it", file, accepts)
}
