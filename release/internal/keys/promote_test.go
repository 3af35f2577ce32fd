package keys

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
	"github.com/nox-mesh/nox-mesh/release/internal/arch/product"
)

// shipped packs the keyring that dir has now, as a release does, signed by the
// key that signs now in by.
func shipped(t *testing.T, dir, by string) string {
	t.Helper()
	ring, err := PacmanKeyring(roots(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := product.Keys(t.TempDir(), product.Spec{Version: "1.0.0", Time: moment, License: []byte("a licence\n")}, product.Keyring(ring))
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	m, err := arch.Write(t.Context(), out, pkg)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(out, m.FileName())
	signed(t, path, by)
	return path
}

func signed(t *testing.T, path, by string) {
	t.Helper()
	key, err := OpenPackage(by, given(phrase))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sig, err := SignPackage(key, f, moment)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path+".sig", sig)
}

// TestAPackageKeyIsPromotedOnlyAfterARelease: promoted too early it locks out
// every machine, and nothing asked before.
func TestAPackageKeyIsPromotedOnlyAfterARelease(t *testing.T) {
	dir := initialised(t)
	before := shipped(t, dir, dir)
	stranger := filepath.Join(t.TempDir(), "keys")
	if _, err := Init(stranger, []byte(phrase), moment); err != nil {
		t.Fatal(err)
	}
	announced := rotated(t, dir, Rotation{Package: true})
	with := shipped(t, dir, dir)

	// What the next key signed itself, no older keyring takes.
	early := copied(t, dir)
	if _, err := Promote(early, Promotion{Unshipped: true}); err != nil {
		t.Fatal(err)
	}
	itself := shipped(t, dir, early)

	unsigned := filepath.Join(t.TempDir(), "unsigned.pkg.tar.zst")
	put(t, unsigned, content(t, filepath.Dir(with), filepath.Base(with)))
	other := filepath.Join(t.TempDir(), "other.pkg.tar.zst")
	put(t, other, []byte("not a package"))
	signed(t, other, dir)
	byStranger := shipped(t, dir, stranger)
	late := moment.Add(2 * time.Hour)
	for name, c := range map[string]struct {
		why  Promotion
		kind fault.Kind
		says string
	}{
		"nothing":             {Promotion{}, fault.Refused, "no release is shown that carries it"},
		"the keyring before":  {Promotion{Shipped: before}, fault.Refused, "does not carry it"},
		"signed by itself":    {Promotion{Shipped: itself}, fault.Refused, "it signed"},
		"not signed":          {Promotion{Shipped: unsigned}, fault.Refused, "is not signed"},
		"no package":          {Promotion{Shipped: other}, fault.Refused, "cannot read keyring package"},
		"signed by strangers": {Promotion{Shipped: byStranger}, fault.Refused, "cannot verify the package"},
		"not there":           {Promotion{Shipped: with + ".not"}, fault.Failed, "no such file"},
		"a directory":         {Promotion{Shipped: dir}, fault.Refused, "no regular file"},
		"both":                {Promotion{Shipped: with, Unshipped: true}, fault.Usage, "it was shipped, or it was not"},
	} {
		c.why.Now = late
		if _, err := Promote(dir, c.why); fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want kind %d and %q", name, err, c.kind, c.says)
		}
		if s, err := Inspect(dir); err != nil || s.Package != announced.Package || s.Next != announced.Next {
			t.Fatalf("%s: it was promoted: %+v, %v", name, s, err)
		}
	}
	if s, err := Promote(dir, Promotion{Shipped: with, Now: late}); err != nil || s.Package != announced.Next || s.Next != "" {
		t.Errorf("%+v, %v", s, err)
	}
}

// copied is the same directory elsewhere.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	for name, text := range files(t, dir) {
		put(t, filepath.Join(to, name), []byte(text))
	}
	return to
}
