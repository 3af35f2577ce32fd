package check

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func manifest(t testing.TB, change func(*Manifest)) []byte {
	t.Helper()
	zero := strings.Repeat("0", 64)
	m := Manifest{Schema: 1, Version: "1.0.0", Channel: "stable", Counter: 7, Go: "go1.26.0", Files: []File{
		{"arch/x86_64/nox-mesh.db", 1, zero}, {"nox-mesh-host-1.0.0-linux-aarch64.tar.gz", 2, zero}, {"nox-mesh-host-1.0.0-linux-x86_64.tar.gz", 2, zero},
	}}
	change(&m)
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestManifestHasOneSpelling(t *testing.T) {
	good := manifest(t, func(*Manifest) {})
	m, err := ParseManifest(good)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(m.Architectures(), " "); got != "aarch64 x86_64" {
		t.Errorf("architectures %q", got)
	}
	if got := string(m.Sums()); !strings.HasPrefix(got, strings.Repeat("0", 64)+"  arch/x86_64/nox-mesh.db\n") || strings.Count(got, "\n") != 3 {
		t.Errorf("sums %q", got)
	}
	for what, b := range map[string][]byte{
		"nothing": nil, "an array": []byte("[]\n"), "something after": append(bytes.Clone(good), '{'), "a blank more": append(bytes.Clone(good), '\n'),
		"an unknown key":   bytes.Replace(good, []byte(`"go"`), []byte(`"Rust": 1, "go"`), 1),
		"another case":     bytes.Replace(good, []byte(`"go"`), []byte(`"Go"`), 1),
		"a key twice":      bytes.Replace(good, []byte(`"schema": 1`), []byte(`"schema": 2, "schema": 1`), 1),
		"another schema":   manifest(t, func(m *Manifest) { m.Schema = 2 }),
		"another channel":  manifest(t, func(m *Manifest) { m.Channel = "testing" }),
		"a pre-release":    manifest(t, func(m *Manifest) { m.Version = "1.0.0-rc.1" }),
		"a large counter":  manifest(t, func(m *Manifest) { m.Counter = 1 << 33 }),
		"a name twice":     manifest(t, func(m *Manifest) { m.Files[1] = m.Files[0] }),
		"not in order":     manifest(t, func(m *Manifest) { m.Files[0], m.Files[1] = m.Files[1], m.Files[0] }),
		"a name that ends": manifest(t, func(m *Manifest) { m.Files[0].Name = "../x" }),
		"an absolute name": manifest(t, func(m *Manifest) { m.Files[0].Name = "/etc/passwd" }),
		"a line break":     manifest(t, func(m *Manifest) { m.Files[0].Name = "a\nb" }),
		"not clean":        manifest(t, func(m *Manifest) { m.Files[0].Name = "a//b" }),
		"no size":          manifest(t, func(m *Manifest) { m.Files[0].Size = -1 }),
		"a short sum":      manifest(t, func(m *Manifest) { m.Files[0].SHA256 = "00" }),
		"a capital sum":    manifest(t, func(m *Manifest) { m.Files[0].SHA256 = strings.Repeat("A", 64) }),
	} {
		if _, err := ParseManifest(b); fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add(manifest(f, func(*Manifest) {}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseManifest(b)
		if err != nil {
			return
		}
		if again, err := m.Encode(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%q is read, and written as %q", b, again)
		}
	})
}

func TestWhatAReleaseHasFollowsFromItsVersion(t *testing.T) {
	m, err := ParseManifest(manifest(t, func(m *Manifest) {}))
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := m.wanted()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(wanted, " ")
	for _, name := range []string{
		"arch/aarch64/nox-mesh-host-1.0.0-1-aarch64.pkg.tar.zst.sig", "arch/x86_64/nox-mesh-keyring-1.0.0-1-any.pkg.tar.zst",
		"arch/x86_64/nox-mesh.files.tar.zst.sig", "mesh-controller-1.0.0-linux-x86_64.cdx.json", "nox-mesh-1.0.0.provenance.sigstore.json",
		"nox-mesh-1.0.0-linux-aarch64.bundle.tar", "nox-mesh-1.0.0-linux-x86_64.seed.json.sigstore.json",
	} {
		if !strings.Contains(" "+all+" ", " "+name+" ") {
			t.Errorf("%s is not among %s", name, all)
		}
	}
	// Counted by hand: 1 tarball, its
	// signature, 1 bundle, the list of its seed with a signature, 4 for SBOMs, 6 for packages, 8 for databases; for two
	// architectures; and the provenance.
	if len(wanted) != 2*(3+2+4+6+8)+1 {
		t.Errorf("%d files", len(wanted))
	}
}
