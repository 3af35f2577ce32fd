package bundle

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// podman is the work of loading as much content as an image of one layer; it is
// left out where podman cannot run. Its mounts go with the namespace they are in.
func podman(b *testing.B, dir string) (work, bool) {
	b.Helper()
	if _, err := exec.LookPath("podman"); err != nil || os.Geteuid() != 0 {
		return work{}, false
	}
	script := func(storage, verb string) []string {
		return []string{"unshare", "--mount", "--propagation", "private", "sh", "-ec",
			// Its runroot must be a short path, which TMPDIR need not be.
			"mkdir -p " + storage + " && mount -t tmpfs tmpfs /run && podman --root $PWD/" + storage + "/graph --runroot /run/pod " + verb}
	}
	// The blobs of the bundle, as the layer of an image.
	run(b, dir, "tar", "-xf", "b.tar", "--one-top-level=rootfs")
	run(b, dir, "tar", "-C", "rootfs", "-cf", "rootfs.tar", ".")
	for _, verb := range []string{"import --quiet rootfs.tar bench.test/image:1", "save --quiet -o image.tar bench.test/image:1"} {
		run(b, dir, script("made", verb)...)
	}
	for _, name := range []string{"rootfs", "rootfs.tar", "made"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			b.Fatal(err)
		}
	}
	version := strings.TrimPrefix(firstLine(b, "podman", "--version"), "podman version ")
	return work{"podman load (docker-archive)", version, script("into", "load --quiet"), "image.tar", nil}, true
}
