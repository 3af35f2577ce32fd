//go:build machine

package bundle

import (
	"path"
	"strings"
	"testing"
)

// A containerd is one of its own, which keeps all it has in the bench's folder and
// reaches nothing.
type containerd struct{ *bench }

func (b *bench) containerd() *containerd {
	b.t.Helper()
	b.put("containerd.toml", "version = 2\nroot = '"+b.path("containerd/root")+"'\nstate = '"+b.path("containerd/state")+"'\n"+
		"disabled_plugins = ['io.containerd.grpc.v1.cri']\n[grpc]\naddress = '"+b.path("containerd.sock")+"'\n")
	b.server("containerd successfully booted", "unshare", "-nm", "containerd", "--config", "containerd.toml")
	return &containerd{b}
}

// ctr asks it, in a namespace (of containerd's: images of one are not in another).
func (c *containerd) ctr(namespace string, words ...string) answer {
	c.t.Helper()
	return c.bench.ask("ctr", append([]string{"-a", "containerd.sock", "-n", namespace}, words...)...)
}

// TestContainerd: all images, by their names and with their digests, whose files
// can be looked at.
func TestContainerd(t *testing.T) {
	judges(t, "ctr", "containerd", "tar")
	b := newBench(t)
	bundle, images := b.withImages()
	const file = "images.bundle.tar"
	c := b.containerd()

	b.judged("images import FILE", c.ctr("all", "images", "import", "--snapshotter", "native", file), "no match for platform in manifest", file, accepts)
	b.judged("images import --no-unpack FILE", c.ctr("named", "images", "import", "--no-unpack", file), accepts, file, accepts)
	listed := b.must(c.ctr("named", "images", "ls"))
	for name, digest := range images {
		found := false
		for line := range strings.Lines(listed) {
			words := strings.Fields(line)
			found = found || len(words) > 2 && words[0] == name && words[2] == digest
		}
		if !found {
			t.Errorf("no %s with %s\n%s", name, digest, listed)
		}
	}
	if !strings.Contains(listed, ":bundle ") || !strings.Contains(listed, bundle) {
		t.Errorf("the bundle itself is not there\n%s", listed)
	}
	for name, want := range map[string]string{app: appFile, db: dbFile} {
		// What ctr mounts is gone with its namespace, that of this shell.
		dir := path.Base(name)
		a := b.in([]string{"unshare", "-nm", "sh", "-ec", `mkdir ` + dir + `; "$0" "$@" >&2; cat ` + dir + `/etc/what`}, "ctr", "-a", "containerd.sock", "-n", "named",
			"images", "mount", "--snapshotter", "native", name, dir)
		b.judged("images mount "+name, a, accepts, file, accepts)
		if a.out != want {
			t.Errorf("%s holds %q, not %q", name, a.out, want)
		}
	}
}
