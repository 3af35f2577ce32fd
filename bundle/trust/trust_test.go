package trust

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

var subject = digest.FromString("the subject")

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func key(t testing.TB, k *ecdsa.PrivateKey, scope ...Scope) Key {
	t.Helper()
	return must[Key](t)(NewKey(k.Public(), scope...))
}

func id(t testing.TB, k *ecdsa.PrivateKey) string { return key(t, k).ID }

func sign(t testing.TB, k crypto.Signer, d digest.Digest) []byte {
	t.Helper()
	return must[[]byte](t)(Sign(k, d))
}

func refused(t testing.TB, err, kind error, text string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != fault.Refused || kind != nil && !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want a refusal with %v and %q", err, kind, text)
	}
}

func TestSignatureIsTheSameBytesAndVerifies(t *testing.T) {
	k := newKey(t)
	a, b := sign(t, k, subject), sign(t, k, subject)
	if !bytes.Equal(a, b) {
		t.Error("two signatures differ")
	}
	p := must[*Policy](t)(FromKeys(k.Public()))
	signers, err := p.Verify(subject, [][]byte{a, b}, ScopeRelease)
	if err != nil || len(signers) != 1 || signers[0].Key != id(t, k) {
		t.Errorf("%v %v", signers, err)
	}
}

// The shape is that of cosign (pkg/cosign/bundle, sigstore-go pkg/sign), read
// here by nothing of ours.
func TestSignatureHasTheShapeCosignReads(t *testing.T) {
	k := newKey(t)
	var b struct {
		MediaType            string `json:"mediaType"`
		VerificationMaterial struct {
			PublicKey struct {
				Hint []byte `json:"hint"`
			} `json:"publicKey"`
		} `json:"verificationMaterial"`
		DSSEEnvelope struct {
			Payload     []byte `json:"payload"`
			PayloadType string `json:"payloadType"`
			Signatures  []map[string][]byte
		} `json:"dsseEnvelope"`
	}
	d := json.NewDecoder(bytes.NewReader(sign(t, k, subject)))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	if want := digest.FromBytes(der).Encoded(); id(t, k) != want || hex.EncodeToString(b.VerificationMaterial.PublicKey.Hint) != want {
		t.Errorf("hint %x", b.VerificationMaterial.PublicKey.Hint)
	}
	if b.MediaType != "application/vnd.dev.sigstore.bundle.v0.3+json" || b.DSSEEnvelope.PayloadType != "application/vnd.in-toto+json" {
		t.Errorf("%q %q", b.MediaType, b.DSSEEnvelope.PayloadType)
	}
	want := `{"_type":"https://in-toto.io/Statement/v1","predicate":{},"predicateType":"https://sigstore.dev/cosign/sign/v1","subject":[{"digest":{"sha256":"` + subject.Encoded() + `"}}]}`
	if string(b.DSSEEnvelope.Payload) != want {
		t.Errorf("payload %s", b.DSSEEnvelope.Payload)
	}
	if len(b.DSSEEnvelope.Signatures) != 1 || len(b.DSSEEnvelope.Signatures[0]) != 1 || b.DSSEEnvelope.Signatures[0]["sig"] == nil {
		t.Fatalf("signatures %v", b.DSSEEnvelope.Signatures)
	}
	pae := "DSSEv1 28 application/vnd.in-toto+json " + strconv.Itoa(len(want)) + " " + want
	sum := sha256.Sum256([]byte(pae))
	if !ecdsa.VerifyASN1(&k.PublicKey, sum[:], b.DSSEEnvelope.Signatures[0]["sig"]) {
		t.Error("the signature does not verify over the PAE")
	}
}

// forge makes a validly signed sigstore bundle of the given content.
func forge(t testing.TB, k *ecdsa.PrivateKey, payloadType, payload string, change func(*sigstoreBundle)) []byte {
	t.Helper()
	e := must[envelope](t)(signEnvelope(payloadType, []byte(payload), false, k))
	raw := must[[]byte](t)(hex.DecodeString(id(t, k)))
	s := sigstoreBundle{Envelope: e, MediaType: MediaType, Material: material{keyHint{base64.StdEncoding.EncodeToString(raw)}}}
	if change != nil {
		change(&s)
	}
	return must[[]byte](t)(json.Marshal(s))
}

func TestT54AValidEnvelopeOfAnotherKindIsRefused(t *testing.T) {
	k := newKey(t)
	p := must[*Policy](t)(FromKeys(k.Public()))
	good := `{"_type":"https://in-toto.io/Statement/v1","predicate":{},"predicateType":"https://sigstore.dev/cosign/sign/v1","subject":[{"digest":{"sha256":"` + subject.Encoded() + `"}}]}`
	if _, err := p.Verify(subject, [][]byte{forge(t, k, statementPayload, good, nil)}, ScopeRelease); err != nil {
		t.Fatalf("the test's own envelope: %v", err)
	}
	for _, c := range []struct {
		name, payloadType, payload, text string
		change                           func(*sigstoreBundle)
	}{
		{"payload type", "application/x", good, "payload type", nil},
		{"payload type of a root", RootPayload, good, "payload type", nil},
		{"payload type changed afterwards", "application/x", good, "does not verify", func(s *sigstoreBundle) { s.Envelope.PayloadType = statementPayload }},
		{"statement type", statementPayload, strings.Replace(good, "Statement/v1", "Statement/v0.1", 1), "statement is of type", nil},
		{"predicate type", statementPayload, strings.Replace(good, "cosign/sign", "slsa/provenance", 1), "predicate type", nil},
		{"another digest", statementPayload, strings.Replace(good, subject.Encoded(), digest.FromString("x").Encoded(), 1), "another digest", nil},
		{"no subject", statementPayload, good[:strings.Index(good, "[")] + "[]}", "0 subjects", nil},
		{"two subjects", statementPayload, strings.Replace(good, "]}", `,{"digest":{"sha256":"00"}}]}`, 1), "2 subjects", nil},
		{"another algorithm", statementPayload, strings.Replace(good, "sha256", "sha512", 1), "another digest", nil},
		{"doubled subject", statementPayload, strings.Replace(good, `"subject"`, `"subject":[],"subject"`, 1), "there twice", nil},
		{"subject in another case", statementPayload, strings.Replace(good, `"subject"`, `"Subject"`, 1), "must be spelled", nil},
		{"media type", statementPayload, good, "media type", func(s *sigstoreBundle) { s.MediaType += "x" }},
		{"no hint", statementPayload, good, "names no public key", func(s *sigstoreBundle) { s.Material.PublicKey.Hint = "" }},
		{"no signature", statementPayload, good, "0 signatures", func(s *sigstoreBundle) { s.Envelope.Signatures = nil }},
		{"two signatures", statementPayload, good, "2 signatures", func(s *sigstoreBundle) {
			s.Envelope.Signatures = append(s.Envelope.Signatures, s.Envelope.Signatures[0])
		}},
		{"empty signature", statementPayload, good, "does not verify", func(s *sigstoreBundle) { s.Envelope.Signatures[0].Sig = "" }},
		{"key id", statementPayload, good, "key id", func(s *sigstoreBundle) { s.Envelope.Signatures[0].KeyID = "x" }},
		{"a signature of bytes", statementPayload, good, `as "cosign sign-blob" makes it`, func(s *sigstoreBundle) {
			s.Envelope, s.Message = envelope{}, json.RawMessage(`{"signature":""}`)
		}},
		{"payload no base64", statementPayload, good, "base64", func(s *sigstoreBundle) { s.Envelope.Payload += "!" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := p.Verify(subject, [][]byte{forge(t, k, c.payloadType, c.payload, c.change)}, ScopeRelease)
			refused(t, err, ErrBadSignature, c.text)
		})
	}
	_, err := p.Verify(subject, [][]byte{bytes.Repeat([]byte(" "), MaxSignature+1)}, ScopeRelease)
	refused(t, err, ErrBadSignature, "at most")
}

func TestEveryFlippedByteOfASignatureIsRefused(t *testing.T) {
	k := newKey(t)
	p := must[*Policy](t)(FromKeys(k.Public()))
	good := sign(t, k, subject)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		_, err := p.Verify(subject, [][]byte{bad}, ScopeRelease)
		refused(t, err, nil, "")
	}
}

func TestVerifySaysWhichOfTheReasons(t *testing.T) {
	rootKey, release, revoked, stranger := newKey(t), newKey(t), newKey(t), newKey(t)
	root := must[[]byte](t)(SignRoot(NewRoot(nil, []Key{
		key(t, rootKey, ScopeRoot), key(t, release, ScopeRelease),
	}, id(t, revoked)), rootKey))
	p := must[*Policy](t)(FromRoot(root))
	bad := sign(t, release, digest.FromString("other"))
	good, unknown, rev := sign(t, release, subject), sign(t, stranger, subject), sign(t, revoked, subject)
	for _, c := range []struct {
		name string
		sigs [][]byte
		kind error
	}{
		{"good", [][]byte{good}, nil},
		{"good beside unknown", [][]byte{unknown, good}, nil},
		{"good beside revoked and bad", [][]byte{rev, bad, good}, nil},
		{"none", nil, ErrNoSignature},
		{"unknown", [][]byte{unknown}, ErrUnknownKey},
		{"revoked", [][]byte{unknown, rev}, ErrRevokedKey},
		{"bad", [][]byte{unknown, rev, bad}, ErrBadSignature},
		{"root key signs no release", [][]byte{sign(t, rootKey, subject)}, ErrUnknownKey},
	} {
		t.Run(c.name, func(t *testing.T) {
			signers, err := p.Verify(subject, c.sigs, ScopeRelease)
			if c.kind != nil {
				refused(t, err, c.kind, c.kind.Error())
			} else if err != nil || len(signers) != 1 || signers[0] != (Signer{id(t, release), 1}) {
				t.Errorf("%v %v", signers, err)
			}
		})
	}
	if _, err := p.Verify(subject, [][]byte{good}, ScopePackage); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a release key signs a package: %v", err)
	}
	_, err := (*Policy)(nil).Verify(subject, [][]byte{good}, ScopeRelease)
	refused(t, err, ErrUnknownKey, "no key is trusted")
	_, err = p.Verify("sha256:../../x", [][]byte{good}, ScopeRelease)
	refused(t, err, nil, "no SHA-256 digest")
	// A key file does not bring back what the root revoked, nor widen a scope.
	loose := must[*Policy](t)(FromKeys(revoked.Public(), rootKey.Public()))
	both := must[*Policy](t)(Merge(p, loose))
	_, err = both.Verify(subject, [][]byte{rev}, ScopeRelease)
	refused(t, err, ErrRevokedKey, "")
	_, err = both.Verify(subject, [][]byte{sign(t, rootKey, subject)}, ScopeRelease)
	refused(t, err, ErrUnknownKey, "")
}

func write(t testing.TB, dir, name string, b []byte) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLoadDirTakesWhatAPublisherLeaves(t *testing.T) {
	dir := t.TempDir()
	_, err := LoadDir(dir)
	refused(t, err, ErrEmpty, "nothing to trust")
	write(t, dir, "root.key", []byte("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n"))
	write(t, dir, "package.pub.asc", []byte("armor"))
	write(t, dir, "01.root.json", []byte("not a version"))
	_, err = LoadDir(dir)
	refused(t, err, ErrEmpty, "")
	files, releases := chain(t, 3)
	for i, f := range files {
		write(t, dir, strconv.Itoa(i+1)+".root.json", f)
	}
	loose := newKey(t)
	pub := write(t, dir, "release.pub", []byte(key(t, loose).Public))
	p := must[*Policy](t)(LoadDir(dir))
	for i, k := range []*ecdsa.PrivateKey{releases[2], loose} {
		if _, err := p.Verify(subject, [][]byte{sign(t, k, subject)}, ScopeRelease); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if v, _ := p.Root(); v != 3 || len(p.Chain()) != 3 {
		t.Errorf("root %d", v)
	}
	if _, err := LoadKey(pub); err != nil {
		t.Error(err)
	}
	write(t, dir, "2.root.json", files[2])
	_, err = LoadDir(dir)
	refused(t, err, nil, "holds version 3")
	if err := os.Remove(filepath.Join(dir, "2.root.json")); err != nil {
		t.Fatal(err)
	}
	_, err = LoadDir(dir)
	refused(t, err, nil, "gap")
}

func TestOnlyAP256PublicKeyIsAKey(t *testing.T) {
	dir := t.TempDir()
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(p384.Public())
	if err != nil {
		t.Fatal(err)
	}
	good := key(t, newKey(t)).Public
	for name, b := range map[string][]byte{
		"p384":    pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
		"garbage": []byte("x"),
		"two":     []byte(good + good),
		"private": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}),
		"no der":  pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")}),
		"large":   bytes.Repeat([]byte("\n"), maxKeyFile+1),
	} {
		_, err := LoadKey(write(t, dir, name, b))
		refused(t, err, nil, "")
	}
	fifo := filepath.Join(dir, "fifo.pub")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(fifo); err == nil {
		t.Error("a FIFO is a key")
	}
	if _, err := Sign(p384, subject); err == nil {
		t.Error("a P-384 key signs")
	}
}

func TestVerifyFile(t *testing.T) {
	dir, k := t.TempDir(), newKey(t)
	p := must[*Policy](t)(FromKeys(k.Public()))
	f := write(t, dir, "MANIFEST", []byte("hello"))
	_, _, err := VerifyFile(f, p)
	refused(t, err, ErrNoSignature, "MANIFEST.sigstore.json")
	d := digest.FromString("hello")
	write(t, dir, "MANIFEST.sigstore.json", sign(t, k, d))
	got, signers, err := VerifyFile(f, p)
	if err != nil || got != d || len(signers) != 1 {
		t.Errorf("%s %v %v", got, signers, err)
	}
	write(t, dir, "MANIFEST", []byte("hellO"))
	_, _, err = VerifyFile(f, p)
	refused(t, err, ErrBadSignature, "another digest")
}

func FuzzVerify(f *testing.F) {
	// The same key in each of the fuzzer's processes.
	k := must[*ecdsa.PrivateKey](f)(ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{7}, 32)))
	p := must[*Policy](f)(FromKeys(k.Public()))
	f.Add(sign(f, k, subject))
	f.Fuzz(func(t *testing.T, b []byte) {
		signers, err := p.Verify(subject, [][]byte{b}, ScopeRelease)
		if err != nil && fault.KindOf(err) != fault.Refused {
			t.Fatal(err)
		}
		if err == nil && len(signers) != 1 {
			t.Fatal(signers)
		}
	})
}

func FuzzParseRoot(f *testing.F) {
	files, _ := chain(f, 2)
	f.Add(files[0])
	f.Add(files[1])
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := ParseRoot(b); err != nil && fault.KindOf(err) != fault.Refused {
			t.Fatal(err)
		}
	})
}
