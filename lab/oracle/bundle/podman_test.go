//go:build machine

package bundle

import (
	"strings"
	"testing"
)

// TestPodman: an image by its name, with its digest; never the file as a whole.
func TestPodman(t *testing.T) {
	judges(t, "podman", "tar")
	b := newBench(t)
	b.engine()
	_, images := b.withImages()
	const file, archive = "images.bundle.tar", "oci-archive:images.bundle.tar"
	for name, want := range images {
		b.judged("pull oci-archive:FILE:"+name, b.ask("podman", "pull", archive+":"+name), accepts, file, accepts)
		got := strings.TrimSpace(b.must(b.ask("podman", "image", "inspect", "--format", "{{.Digest}}", name)))
		if got != want {
			t.Errorf("podman has %s as %s, not %s", name, got, want)
		}
	}
	b.judged("pull oci-archive:FILE:bundle, as an image", b.ask("podman", "pull", archive+":bundle"), "unsupported image-specific operation on artifact", file, accepts)
	b.judged("load -i FILE", b.ask("podman", "load", "-i", file), "more than one image in oci", file, accepts)
	left := strings.Fields(b.must(b.ask("podman", "images", "--format", "{{.Repository}}:{{.Tag}}")))
	if len(left) != len(images) {
		t.Errorf("podman has %q", left)
	}
}
