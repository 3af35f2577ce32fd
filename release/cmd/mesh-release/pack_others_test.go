package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
)

func packArgs(version, out string, programs ...string) []string {
	return append([]string{"pack", "--source", "src", "--version", version, "--counter", "1700000001", "--keys", "keys", "--out", out}, programs...)
}

// otherPrograms: a release states of its programs only what they are.
func otherPrograms(t *testing.T) {
	x86, all := compile(t, "1.0.0", "bin")
	// By hand, with one thing different each time.
	by := func(out, ldflags string, env []string, flags ...string) string {
		t.Helper()
		c := exec.Command("go", append(append([]string{"build", "-buildvcs=false", "-o", filepath.Join("..", out, "mesh-host")}, flags...),
			"-ldflags="+ldflags, "./host/cmd/mesh-host")...)
		c.Dir, c.Env = "src", append(append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64"), env...)
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return filepath.Join(out, "mesh-host")
	}
	const linked = "-s -w -buildid= -X github.com/nox-mesh/nox-mesh/internal/version.version="
	for what, c := range map[string]struct {
		version  string
		programs []string
		says     string
	}{
		"an older version":     {"2.0.0", x86, `it says that it is 1.0.0, not 2.0.0`},
		"one of two is older":  {"2.0.0", []string{by("two", linked+"2.0.0", nil, "-trimpath"), x86[1]}, `mesh-controller": it says that it is 1.0.0, not 2.0.0`},
		"of a foreign machine": {"2.0.0", all[2:], `it says that it is 1.0.0, not 2.0.0`},
		"a longer version":     {"1.0.0-rc.1", x86, `it says that it is 1.0.0, not 1.0.0-rc.1`},
		"of no version":        {"1.0.0", []string{by("none", "-s -w -buildid=", nil, "-trimpath"), x86[1]}, "none/mesh-host\": no version is linked into it"},
		"for newer processors": {"1.0.0", []string{by("v3", linked+"1.0.0", []string{"GOAMD64=v3"}, "-trimpath"), x86[1]}, "v3/mesh-host\": it was compiled with GOAMD64=v3; .goreleaser.yaml means v1"},
		"with paths":           {"1.0.0", []string{by("paths", linked+"1.0.0", nil), x86[1]}, "without -trimpath=true"},
		"with tags":            {"1.0.0", []string{by("tags", linked+"1.0.0", nil, "-trimpath", "-tags=mine"), x86[1]}, "with -tags=mine, which .goreleaser.yaml does not have"},
		"with symbols":         {"1.0.0", []string{by("symbols", strings.TrimPrefix(linked, "-s -w ")+"1.0.0", nil, "-trimpath"), x86[1]}, "without -ldflags=-s"},
	} {
		for _, out := range []string{mesh(t, fault.Refused, packArgs(c.version, "bad", c.programs...)...), collected(t, c.version, c.programs)} {
			if !strings.Contains(out, c.says) {
				t.Errorf("%s: %s", what, out)
			}
		}
	}
	if left, err := os.ReadDir("bad"); err == nil {
		t.Errorf("it holds %v", left)
	}
}

// collected hands over one program at a time, until one is refused.
func collected(t *testing.T, version string, programs []string) string {
	t.Helper()
	defer os.RemoveAll("set")
	for _, program := range programs[:len(programs)-1] {
		if out, err := try(append(packArgs(version, "set/release", program), "--collect")...); err != nil {
			return out + err.Error()
		}
	}
	return mesh(t, fault.Refused, append(packArgs(version, "set/release", programs[len(programs)-1]), "--collect")...)
}

// onlyOurs: a list that anybody can write lets nothing be removed.
func onlyOurs(t *testing.T) {
	x86, _ := compile(t, "2.0.0", "bin")
	pack := func(kind fault.Kind) string { t.Helper(); return mesh(t, kind, packArgs("2.0.0", "mine", x86...)...) }
	stay := func(what, says string) {
		t.Helper()
		before := tree(t, "mine")
		if out := pack(fault.Refused); !strings.Contains(out, says) {
			t.Errorf("%s: %s", what, out)
		}
		if out := mesh(t, fault.Refused, "build", "--source", "src", "--version", "2.0.0", "--counter", "1700000001", "--keys", "keys", "--out", "mine"); !strings.Contains(out, says) {
			t.Errorf("%s, build: %s", what, out)
		}
		if after := tree(t, "mine"); !slices.Equal(before, after) {
			t.Errorf("%s: %q is now %q", what, before, after)
		}
	}
	good, err := check.ParseManifest(read(t, "dist/release.json"))
	if err != nil {
		t.Fatal(err)
	}
	forge := func(change func(m *check.Manifest)) {
		t.Helper()
		m := good
		m.Files = slices.Clone(good.Files)
		change(&m)
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		write(t, "mine/release.json", b)
	}
	fresh := func() {
		t.Helper()
		if err := os.RemoveAll("mine"); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS("mine", os.DirFS("dist")); err != nil {
			t.Fatal(err)
		}
	}

	// Somebody's files, named by a list that nobody signed.
	if err := os.Mkdir("mine", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, "mine/thesis", []byte("mine"))
	forge(func(m *check.Manifest) {
		m.Files = []check.File{{Name: "thesis", Size: 4, SHA256: "3fd30542fe3f61b14bd4a4b2dc0b6fb30fa6f63ebce52dd1778aaa8c4dc02cff"}}
	})
	stay("a list of somebody's files", "it holds no release of ours")
	// The list of a release, and other files of its names.
	fresh()
	write(t, "mine/release.json.sigstore.json", nil)
	write(t, "mine/nox-mesh-1.0.0-linux-x86_64.bundle.tar", []byte("mine"))
	stay("a file of that name", `it holds no release of ours: "nox-mesh-1.0.0-linux-x86_64.bundle.tar": it has 4 bytes`)
	fresh()
	write(t, "mine/release.json.sigstore.json", nil)
	b := read(t, "mine/nox-mesh-1.0.0-linux-x86_64.bundle.tar")
	b[len(b)/2] ^= 1
	write(t, "mine/nox-mesh-1.0.0-linux-x86_64.bundle.tar", b)
	stay("one of that size", "its SHA-256 is")
	fresh()
	write(t, "mine/SHA256SUMS", []byte("mine"))
	forge(func(m *check.Manifest) { m.Compressor = "another" })
	stay("other sums", `"SHA256SUMS": it does not say what release.json says`)
	fresh()
	forge(func(m *check.Manifest) { m.Compressor = "another" })
	write(t, "mine/release.json.sigstore.json", bytes.Repeat([]byte("x"), len(read(t, "dist/release.json.sigstore.json"))))
	stay("somebody's text in the place of a signature", `"release.json.sigstore.json": it is not written`)
	fresh()
	if err := os.Mkdir("mine/empty", 0o755); err != nil {
		t.Fatal(err)
	}
	stay("an empty folder", `"empty" is in it`)
	if err := os.RemoveAll("mine"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("mine", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, "mine/SHA256SUMS", []byte("mine"))
	stay("no list", `"SHA256SUMS" is in it`)
	// And a folder that only has the name of what a kill leaves.
	fresh()
	if err := os.Mkdir(".mine.next", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, ".mine.next/thesis", []byte("mine"))
	stay("a stranger's folder beside it", ".mine.next\" is in the way: mesh-release did not make it")
	if got := string(read(t, ".mine.next/thesis")); got != "mine" {
		t.Errorf("%q", got)
	}
	if err := os.RemoveAll(".mine.next"); err != nil {
		t.Fatal(err)
	}

	// What is mounted below lies elsewhere.
	fresh()
	home := t.TempDir()
	write(t, home+"/thesis", []byte("mine"))
	if err := unix.Mount(home, "mine/arch/x86_64", "", unix.MS_BIND, ""); err == nil {
		stay("a mount below", `mine/arch/x86_64" is a mount point`)
		if err := unix.Unmount("mine/arch/x86_64", unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	} else if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
		t.Error(err)
	}

	// What is a release is replaced: of other keys by its digests, a damaged one by
	// its signature.
	fresh()
	mesh(t, 0, "keys", "init", "strangers")
	stranger, err := (&program{quiet: true, keys: "strangers", secret: []byte(testPassphrase)}).signer()
	if err != nil {
		t.Fatal(err)
	}
	// A signature of somebody else's is never replaced by signing a file.
	if err := os.Remove("mine/release.json.sigstore.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.File("mine/release.json"); err != nil {
		t.Fatal(err)
	}
	pack(0)
	fresh()
	write(t, "mine/nox-mesh-1.0.0-linux-x86_64.bundle.tar", []byte("cut"))
	pack(0)
	if m, err := check.ReadManifest("mine", publisher(t).Policy); err != nil || m.Version != "2.0.0" {
		t.Errorf("%q, %v", m.Version, err)
	}
}

// tree is what is in a directory, with the contents.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			all = append(all, path)
			return nil
		}
		all = append(all, path+": "+string(read(t, path)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
