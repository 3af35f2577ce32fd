package trust

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// noon is a moment for tests that ask no other program.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

var content = []byte("a package\nof two lines\n")

func TestPackageSignatureCountsOrSaysWhyNot(t *testing.T) {
	p := newPublisher(t, noon)
	for _, a := range p.attempts(t, content) {
		signer, err := p.policy.VerifyPackage(bytes.NewReader(content), a.sig, p.times())
		if a.want == nil {
			if err != nil || signer.Root != 1 || len(signer.Key) != 40 {
				t.Errorf("%s: %+v, %v", a.name, signer, err)
			}
			continue
		}
		if signer != (Signer{}) || !errors.Is(err, a.want) || fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: %+v, %v; want a refusal with %q", a.name, signer, err, a.want)
		}
	}
}

func TestPackageSignerIsThePrimaryKey(t *testing.T) {
	p := newPublisher(t, noon)
	sig := forgery{by: p.author.signing, made: noon.Add(-day)}.sign(content)
	signer, err := p.policy.VerifyPackage(bytes.NewReader(content), sig, p.times())
	if err != nil || signer != (Signer{Key: p.author.primary.id(), Root: 1}) {
		t.Errorf("%+v, %v", signer, err)
	}
}

// TestNoChangedSignatureCounts flips every bit, and cuts at every byte. R and S
// of Ed25519, the hash tag and the length of each number included.
func TestNoChangedSignatureCounts(t *testing.T) {
	p := newPublisher(t, noon)
	for _, f := range []forgery{{by: p.author.signing, made: noon.Add(-day)}, {by: p.direct.primary, made: noon.Add(-2 * day), hashed: sub(100, 1)}} {
		good := f.sign(content)
		if _, err := p.policy.VerifyPackage(bytes.NewReader(content), good, p.times()); err != nil {
			t.Fatal(err)
		}
		for i := range good {
			for bit := range 8 {
				bad := bytes.Clone(good)
				bad[i] ^= 1 << bit
				if _, err := p.policy.VerifyPackage(bytes.NewReader(content), bad, p.times()); err == nil {
					t.Errorf("bit %d of byte %d of %d flipped: it verifies", bit, i, len(good))
				}
			}
			if _, err := p.policy.VerifyPackage(bytes.NewReader(content), good[:i], p.times()); err == nil {
				t.Errorf("cut after %d bytes: it verifies", i)
			}
		}
	}
}

// TestNumbersThatBeginWithZeros: one signature in 128 has an R or an S that is
// written in fewer bytes.
func TestNumbersThatBeginWithZeros(t *testing.T) {
	p := newPublisher(t, noon)
	short := 0
	for i := range 1500 {
		file := fmt.Appendf(nil, "package %d", i)
		sig := forgery{by: p.author.signing, made: noon}.sign(file)
		if len(sig) < len(forgery{by: p.author.signing, made: noon}.sign(content)) {
			short++
		}
		if _, err := p.policy.VerifyPackage(bytes.NewReader(file), sig, p.times()); err != nil {
			t.Fatalf("package %d: %v", i, err)
		}
	}
	if short == 0 {
		t.Error("none of them was short: the test shows nothing")
	}
}

func TestSignatureFromTheFuture(t *testing.T) {
	p := newPublisher(t, noon)
	sig := forgery{by: p.author.signing, made: noon}.sign(content)
	epoch := time.Unix(0, 0)
	for _, c := range []struct {
		name  string
		times Times
		good  bool
	}{
		{"clock right", Times{Clock: noon}, true},
		{"clock a day behind, to the second", Times{Clock: noon.Add(-day)}, true},
		{"clock a second more behind", Times{Clock: noon.Add(-day - time.Second)}, false},
		{"clock in 1970", Times{Clock: epoch}, false},
		{"clock in 1970, built today", Times{Clock: epoch, Build: noon}, true},
		{"clock in 1970, old build, bundle of today", Times{Clock: epoch, Build: noon.Add(-300 * day), Bundle: noon}, true},
		{"clock far ahead", Times{Clock: noon.Add(5000 * day)}, true},
		{"nothing known", Times{}, false},
	} {
		_, err := p.policy.VerifyPackage(bytes.NewReader(content), sig, c.times)
		if (err == nil) != c.good || !c.good && !errors.Is(err, ErrFuture) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	_, err := p.policy.VerifyPackage(bytes.NewReader(content), sig, Times{Clock: epoch, Build: noon.Add(-9 * day), Bundle: noon.Add(-8 * day)})
	for _, part := range []string{"2026-06-01 12:00:00Z", "the clock says 1970-01-01", "built 2026-05-23", "bundle is of 2026-05-24"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

// TestOnlyTheRootNamesPackageKeys: a machine that trusts a release key by a file
// trusts nobody for packages.
func TestOnlyTheRootNamesPackageKeys(t *testing.T) {
	p := newPublisher(t, noon)
	sig := forgery{by: p.author.signing, made: noon}.sign(content)
	loose := must[*Policy](t)(FromKeys(newKey(t).Public()))
	for name, policy := range map[string]*Policy{"nobody": nil, "a key file": loose, "another root": rooted(t, nil, p.direct.certificate())} {
		_, err := policy.VerifyPackage(bytes.NewReader(content), sig, p.times())
		if !errors.Is(err, ErrUnknownKey) || fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPackageThatCannotBeReadIsNoRefusal(t *testing.T) {
	p := newPublisher(t, noon)
	sig := forgery{by: p.author.signing, made: noon}.sign(content)
	broken := errors.New("the disk is gone")
	_, err := p.policy.VerifyPackage(iotest.ErrReader(broken), sig, p.times())
	if !errors.Is(err, broken) || fault.KindOf(err) != fault.Failed {
		t.Errorf("%v", err)
	}
}

func TestRootNamesOnlySoundPackageKeys(t *testing.T) {
	p := newPublisher(t, noon)
	old := p.author.primary.created
	good := p.author.certificate()
	two := append(bytes.Clone(good), good...)
	weak := p.author
	weak.hash = crypto.SHA1
	flipped := bytes.Clone(good)
	flipped[len(flipped)-1] ^= 1
	for name, c := range map[string][]byte{
		"nothing": nil, "text": []byte("hello"), "two keys": two, "subkey without binding": p.unbound.certificate(),
		"subkey that does not sign back": p.unanswered.certificate(), "signed with SHA-1": weak.certificate(),
		"a flipped bit": flipped, "cut": good[:len(good)-1], "no user id": frame(6, p.direct.primary.body),
		"only certifies":      good[:len(good)-len(subkeyOf(p.author))],
		"a control character": person{primary: forgeKey(1, old), user: "a\x1bb"}.certificate(),
		"subkey of another":   append(bytes.Clone(p.direct.certificate()), subkeyOf(p.author)...),
		"revoked by itself":   append(frame(6, p.direct.primary.body), p.direct.revocation(old)...),
		"more than is read":   append(bytes.Clone(good), make([]byte, maxCertificate)...),
		"something after it":  append(bytes.Clone(good), 0),
	} {
		if k, err := NewPackageKey(c); err == nil {
			t.Errorf("%s: a root may name it as %s", name, k.ID)
		}
	}
	k := must[Key](t)(NewPackageKey(good))
	if k.ID != p.author.primary.id() {
		t.Errorf("id %s, want %s", k.ID, p.author.primary.id())
	}
	if ids := must[[]string](t)(k.Fingerprints()); len(ids) != 2 || ids[0] != k.ID || ids[1] != p.author.signing.id() {
		t.Errorf("fingerprints %v", ids)
	}
	again := must[Key](t)(NewPackageKey(must[[]byte](t)(k.Keyring())))
	if again.OpenPGP != k.OpenPGP {
		t.Error("the key has two spellings")
	}
}

// subkeyOf is the packets of the subkey alone.
func subkeyOf(q person) []byte {
	with := q.certificate()
	q.signing = nil
	return with[len(q.certificate()):]
}

// TestRootHoldsToOneSpelling: what an older reader or a careless one could take
// for something else is no root.
func TestRootHoldsToOneSpelling(t *testing.T) {
	p := newPublisher(t, noon)
	rootKey := newKey(t)
	pgp := must[Key](t)(NewPackageKey(p.author.certificate()))
	both, scoped, misnamed, old := pgp, pgp, pgp, key(t, rootKey, ScopeRoot, ScopePackage)
	both.Public = key(t, newKey(t), ScopeRelease).Public
	scoped.Scope = []Scope{ScopePackage, ScopeRelease}
	misnamed.ID = p.direct.primary.id()
	oldFormat := pgp
	oldFormat.OpenPGP = strictBase64.EncodeToString(p.author.certificate())
	for name, c := range map[string]struct {
		keys    []Key
		revoked []string
	}{
		"a key of two kinds":                {[]Key{both}, nil},
		"an OpenPGP key with another scope": {[]Key{scoped}, nil},
		"the fingerprint of another":        {[]Key{misnamed}, nil},
		"a P-256 key with scope package":    {[]Key{old}, nil},
		"a key that is not canonical":       {[]Key{oldFormat}, nil},
		"a key that is listed and revoked":  {[]Key{pgp}, []string{pgp.ID}},
		"a subkey that is revoked":          {[]Key{pgp}, []string{p.author.signing.id()}},
		"a revoked id in capitals":          {nil, []string{strings.ToUpper(pgp.ID)}},
		"a revoked id of neither kind":      {nil, []string{pgp.ID[:39]}},
		"the same key twice":                {[]Key{pgp, pgp}, nil},
	} {
		keys := c.keys
		if c.keys == nil || keys[0].ID != old.ID {
			keys = append(keys, key(t, rootKey, ScopeRoot))
		}
		if _, err := SignRoot(NewRoot(nil, keys, c.revoked...), rootKey); err == nil {
			t.Errorf("%s: it is a root", name)
		}
	}
}

// TestGPGsOwnSignatures: made by gpg 2.2.40 with keys it made itself, one RSA of
// 4096 bits and one Ed25519 (see testdata/openpgp/README).
func TestGPGsOwnSignatures(t *testing.T) {
	for _, name := range []string{"rsa4096", "ed25519"} {
		read := func(suffix string) []byte {
			return must[[]byte](t)(os.ReadFile(filepath.Join("testdata/openpgp", name+suffix)))
		}
		policy, sig, file := rooted(t, nil, read(".gpg")), read(".sig"), read(".gpg")
		at := Times{Clock: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)}
		if _, err := policy.VerifyPackage(bytes.NewReader(file), sig, at); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i := range sig {
			bad := bytes.Clone(sig)
			bad[i] ^= 1
			if _, err := policy.VerifyPackage(bytes.NewReader(file), bad, at); err == nil {
				t.Errorf("%s: byte %d flipped: it verifies", name, i)
			}
		}
	}
}

func FuzzPackageSignature(f *testing.F) {
	p := newPublisher(f, noon)
	attempts := p.attempts(f, content)
	for _, a := range attempts {
		f.Add(a.sig)
	}
	good := map[string]bool{}
	for _, a := range attempts {
		if a.want == nil {
			good[string(a.sig)] = true
		}
	}
	f.Fuzz(func(t *testing.T, sig []byte) {
		_, err := p.policy.VerifyPackage(bytes.NewReader(content), sig, p.times())
		switch {
		case err == nil && !good[string(sig)] && !good["\x88"+string(sig[1:])] && !good["\xc2"+string(sig[1:])]:
			// Only the two headers are free.
			t.Errorf("%x verifies", sig)
		case err != nil && fault.KindOf(err) != fault.Refused:
			t.Errorf("%x: %v", sig, err)
		}
	})
}

func FuzzPackageKey(f *testing.F) {
	p := newPublisher(f, noon)
	for _, q := range []person{p.author, p.direct, p.expired, p.unbound, p.unanswered} {
		f.Add(q.certificate())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := NewPackageKey(b)
		if err != nil {
			return
		}
		ring, err := k.Keyring()
		if err != nil {
			t.Fatalf("%x: it is taken, and not read again: %v", b, err)
		}
		again, err := NewPackageKey(ring)
		if err != nil || again.ID != k.ID || again.OpenPGP != k.OpenPGP {
			t.Errorf("%x: %v, %v", b, again, err)
		}
	})
}
