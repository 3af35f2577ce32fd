package arch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// makepkg runs the real makepkg on the PKGBUILD in dir and returns the folder
// with the packages. makepkg refuses to run as root: in a user namespace it is
// somebody else, and can still read what root can.
func makepkg(t testing.TB, dir string, env ...string) string {
	t.Helper()
	if out, err := exec.Command("unshare", "--user", "--map-user=1000", "--map-group=1000", "true").CombinedOutput(); err != nil {
		t.Skipf("no user namespaces here: %v %s", err, out)
	}
	out := t.TempDir()
	machineType := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	conf := file(t, filepath.Join(out, "makepkg.conf"), fmt.Sprintf(`. /etc/makepkg.conf
CARCH=%s
CHOST=%[1]s-pc-linux-gnu
BUILDENV=(!distcc !color !ccache !check !sign)
OPTIONS=(strip docs !libtool !staticlibs emptydirs zipman purge !debug)
PKGEXT=.pkg.tar.zst
COMPRESSZST=(zstd -c -z -q -)
PACKAGER='nox-mesh <packages@nox-mesh.invalid>'
PKGDEST=%s/packages
BUILDDIR=%[2]s/build
`, machineType, out))
	if err := os.Mkdir(filepath.Join(out, "packages"), 0o755); err != nil {
		t.Fatal(err)
	}
	must(t, dir, append(append(goEnv(t), env...), "HOME="+out),
		"unshare", "--user", "--map-user=1000", "--map-group=1000", "makepkg", "--config", conf, "--nodeps")
	return filepath.Join(out, "packages")
}

// TestMakepkgBuildsTheSamePackage builds nox-mesh-host from source by
// pkgbuild/PKGBUILD: same files, modes, contents and metadata as ours.
func TestMakepkgBuildsTheSamePackage(t *testing.T) {
	needs(t, "makepkg", "fakeroot", "bsdtar", "unshare", "go", "zstd")
	const version = "1.0.0-rc.1"
	tree := copyOfSource(t)
	trust := t.TempDir()
	file(t, filepath.Join(trust, "1.root.json"), "{\"a\": 1}\n")
	file(t, filepath.Join(trust, "2.root.json"), "{\"a\": 2}\n")
	theirs := makepkg(t, filepath.Join(tree, "pkgbuild"), "NOX_MESH_VERSION="+version, "NOX_MESH_TRUST="+trust)
	made, err := filepath.Glob(filepath.Join(theirs, "*.pkg.tar.zst"))
	if err != nil || len(made) != 1 {
		t.Fatal(made, err)
	}
	ours := pack(t, t.TempDir(), "host", version, realHost(t, t.TempDir(), version), trust)
	if filepath.Base(made[0]) != filepath.Base(ours) {
		t.Errorf("makepkg calls it %s, we %s", filepath.Base(made[0]), filepath.Base(ours))
	}
	a, b := inspect(t, made[0]), inspect(t, ours)
	found := differences(a, b)
	for _, d := range found {
		t.Error(d)
	}
	if a.install != b.install {
		found = append(found, ".INSTALL")
	}
	tool.Verdict(t, "makepkg", "nox-mesh-host by pkgbuild/PKGBUILD", fmt.Sprintf("%s, %d entries", filepath.Base(made[0]), len(a.listing)), compared(found, ""))
	if a.install != b.install || a.install == "" {
		t.Errorf("another scriptlet:\n%s\n%s", a.install, b.install)
	}
	if len(b.listing) < 35 {
		t.Errorf("only %d entries", len(b.listing))
	}
	t.Logf("%d entries: %s\n%s", len(b.listing), filepath.Base(ours), strings.Join(b.info, "\n"))
}

// copyOfSource copies what a build reads: makepkg writes beside its PKGBUILD, and
// a copy elsewhere shows that paths do not count.
func copyOfSource(t *testing.T) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "src with space")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"host", "internal", "bundle", "installer", "pkgbuild", "go.mod", "go.sum", "LICENSE"} {
		must(t, source(t), nil, "cp", "-a", p, tree)
	}
	return tree
}

// realHost builds mesh-host as it is released.
func realHost(t testing.TB, dir, version string) string {
	t.Helper()
	out := filepath.Join(dir, "mesh-host")
	// As in .goreleaser.yaml.
	must(t, source(t), append(goEnv(t), "CGO_ENABLED=0"), "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid= -X github.com/nox-mesh/nox-mesh/internal/version.version="+version, "-o", out, "./host/cmd/mesh-host")
	return out
}
