package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// TestAContentStoreIsReadInPlace: skopeo finds in the host's content store the
// bundle that was read into it, by its name, and every digest under it holds.
func TestAContentStoreIsReadInPlace(t *testing.T) {
	needs(t, "skopeo")
	b := newBench(t)
	want := b.bundle()
	if err := os.MkdirAll(b.path("machine/var/lib/nox-mesh"), 0o700); err != nil { // as installed
		t.Fatal(err)
	}
	b.run(b.path("mesh-host"), "--root", "machine", "bootstrap", "--trust", "keys", "site.bundle.tar")
	ref := "oci:machine/var/lib/nox-mesh/content:site-1-linux-" + architecture

	index := b.run("skopeo", "inspect", "--raw", ref)
	sum := sha256.Sum256(index)
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != want {
		t.Errorf("skopeo finds %s, the bundle is %s\n%s", got, want, index)
	}
	// A copy reads every blob and checks its digest. (The index itself skopeo 1.9
	// writes anew, since its descriptors have no platform.)
	b.run("skopeo", "copy", "--quiet", "--all", ref, "oci:copy:site")
	tool := sha256.Sum256([]byte(strings.Repeat("a tool\n", 1000)))
	if _, err := os.Stat(b.path("copy/blobs/sha256/" + hex.EncodeToString(tool[:]))); err != nil {
		t.Error(err)
	}
}
