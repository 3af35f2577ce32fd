package keys

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const phrase = "correct horse"

var moment = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func given(s string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(s), nil }
}

// initialised is a directory of keys of the test's own: a copy of one that is
// made once, as it takes a while to make (a passphrase is stretched).
func initialised(t *testing.T) string {
	t.Helper()
	made, err := once()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "keys")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, b := range made {
		put(t, filepath.Join(dir, name), b)
	}
	return dir
}

var once = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "keys")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := Init(dir, []byte(phrase), moment); err != nil {
		return nil, err
	}
	made := map[string][]byte{}
	for _, name := range []string{RootKey, ReleaseKey, ReleasePublic, PackageSecret, PackagePublic, FirstRoot} {
		if made[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return made, nil
})

func content(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSigstoreReadsTheKeys(t *testing.T) {
	dir := initialised(t)
	text := content(t, dir, ReleaseKey)
	if !strings.HasPrefix(string(text), "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n") {
		t.Fatalf("the key is %.60s", text)
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(text, cryptoutils.StaticPasswordFunc([]byte(phrase)))
	if err != nil {
		t.Fatal(err)
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(content(t, dir, ReleasePublic))
	if err != nil {
		t.Fatal(err)
	}
	if !key.(*ecdsa.PrivateKey).PublicKey.Equal(public) {
		t.Error("release.pub is not the public half of release.key")
	}
	ours, err := Open(dir, ReleaseKey, given(phrase))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("message"))
	sig, err := ecdsa.SignASN1(rand.Reader, ours, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	if !ecdsa.VerifyASN1(public.(*ecdsa.PublicKey), sum[:], sig) {
		t.Error("what the key signs does not verify with release.pub")
	}
}

func TestKeyOfSigstoreOpens(t *testing.T) {
	dir := t.TempDir()
	text, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte(phrase)))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, ReleaseKey), text)
	key, err := Open(dir, ReleaseKey, given(phrase))
	if err != nil {
		t.Fatal(err)
	}
	want, err := cryptoutils.UnmarshalPEMToPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	if !key.PublicKey.Equal(want) {
		t.Error("another key was opened")
	}
}

func TestModesWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0o000, 0o077} {
		old := syscall.Umask(mask)
		dir := filepath.Join(t.TempDir(), "keys")
		print, err := Init(dir, []byte(phrase), moment)
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content(t, dir, FirstRoot)); print != hex.EncodeToString(sum[:]) {
			t.Errorf("fingerprint %s is not that of %s", print, FirstRoot)
		}
		for name, want := range map[string]os.FileMode{
			".": os.ModeDir | 0o700, RootKey: 0o600, ReleaseKey: 0o600, ReleasePublic: 0o644, FirstRoot: 0o644,
			PackageSecret: 0o600, PackagePublic: 0o644,
		} {
			fi, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if fi.Mode() != want {
				t.Errorf("umask %03o: %s has mode %v, want %v", mask, name, fi.Mode(), want)
			}
		}
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	dir := initialised(t)
	before := content(t, dir, RootKey)
	if _, err := Init(dir, []byte("another"), moment); fault.KindOf(err) != fault.Refused {
		t.Errorf("second init: %v", err)
	}
	if !bytes.Equal(before, content(t, dir, RootKey)) {
		t.Error("root.key was overwritten")
	}
}

func TestRootSaysWhoMaySignWhat(t *testing.T) {
	dir := initialised(t)
	roots, err := Roots(dir)
	if err != nil || len(roots) != 1 {
		t.Fatalf("%d roots, %v", len(roots), err)
	}
	root, err := trust.ParseRoot(roots[0])
	if err != nil {
		t.Fatal(err)
	}
	scopes := map[string][]trust.Scope{}
	for _, k := range root.Keys {
		scopes[k.ID] = k.Scope
	}
	for name, want := range map[string]trust.Scope{RootKey: trust.ScopeRoot, ReleaseKey: trust.ScopeRelease} {
		key, err := Open(dir, name, given(phrase))
		if err != nil {
			t.Fatal(err)
		}
		k, err := trust.NewKey(key.Public(), want)
		if err != nil {
			t.Fatal(err)
		}
		if got := scopes[k.ID]; len(got) != 1 || got[0] != want {
			t.Errorf("%s has scopes %v in the root, want only %s", name, got, want)
		}
	}
	pgp, err := OpenPackage(dir, given(phrase))
	if err != nil {
		t.Fatal(err)
	}
	if got := scopes[pgp.Fingerprint()]; len(got) != 1 || got[0] != trust.ScopePackage || len(scopes) != 3 {
		t.Errorf("%s has scopes %v in the root, want only %s; %d keys", PackageSecret, got, trust.ScopePackage, len(scopes))
	}
	if root.Version != 1 || root.Threshold != 1 {
		t.Errorf("version %d, threshold %d", root.Version, root.Threshold)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := initialised(t)
	plain, _, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "plain.key"), plain)
	put(t, filepath.Join(dir, "text.key"), []byte("hello"))
	for _, c := range []struct {
		key, pass, want string
		kind            fault.Kind
	}{
		{ReleaseKey, "wrong", "wrong passphrase", fault.Refused},
		{"none.key", phrase, "is not there", fault.Failed},
		{"plain.key", phrase, "not an encrypted", fault.Refused},
		{"text.key", phrase, "not an encrypted", fault.Refused},
	} {
		_, err := Open(dir, c.key, given(c.pass))
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v (kind %d)", c.key, err, fault.KindOf(err))
			continue
		}
		if strings.Contains(err.Error(), phrase) || strings.Contains(err.Error(), c.pass+"\"") {
			t.Errorf("the passphrase is in the error: %v", err)
		}
	}
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
