package cosign

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"testing"
)

// offline keeps cosign from asking which services sign, and from telling them.
func offline(args ...string) []string {
	return append(args, "--use-signing-config=false", "--tlog-upload=false", "--yes")
}

// TestCosignUsesOurKey: release.key is a key of cosign's as it is.
func TestCosignUsesOurKey(t *testing.T) {
	b := newBench(t)
	b.put("notes.txt", "what changed\n")
	const sig = "notes.txt.sigstore.json"

	// A statement as ours: cosign's own, but for the version of in-toto.
	b.put("statement.json", fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","predicate":{},"predicateType":"https://sigstore.dev/cosign/sign/v1","subject":[{"digest":{"sha256":"%x"}}]}`,
		sha256.Sum256([]byte("what changed\n"))))
	b.must(b.sigstore(offline("attest-blob", "--key", "keys/release.key", "--statement", "statement.json", "--bundle", sig)...))
	theirs, ours := b.verifyBlob("keys", "notes.txt")
	b.judged("cosign attest-blob --statement with our key", theirs, ours, accepts, accepts)
	b.flip("notes.txt")
	theirs, ours = b.verifyBlob("keys", "notes.txt")
	b.judged("cosign attest-blob --statement with our key: a flipped byte", theirs, ours, refuses, refuses)

	b.must(b.sigstore(offline("sign-blob", "--key", "keys/release.key", "--bundle", sig, "notes.txt")...))
	theirs, ours = b.verifyBlob("keys", "notes.txt")
	b.judged("cosign sign-blob with our key: no statement is signed", theirs, ours, accepts, refuses)

	// Without telling it, cosign asks the network first.
	b.put("more.txt", "more")
	if a := b.sigstore("sign-blob", "--key", "keys/release.key", "--yes", "--bundle", "more.txt.sigstore.json", "more.txt"); a.code == 0 {
		t.Errorf("cosign %s signs with no network by itself: doc.go says that it does not", shared.version)
	}
}

// TestAWrongPassphrase opens no key, whoever asks.
func TestAWrongPassphrase(t *testing.T) {
	b := newBench(t)
	b.put("notes.txt", "what changed\n")
	b.put("secret", "another")
	c := b.command("unshare", append([]string{"-n", b.cosign}, offline("sign-blob", "--key", "keys/release.key", "--bundle", "out", "notes.txt")...)...)
	c.Env = append(c.Env, "COSIGN_PASSWORD=another")
	b.judged("release.key with a wrong passphrase", b.run(c), b.release("sign", "--keys", "keys", "notes.txt"), refuses, refuses)
}

// TestWeUseCosignsKey: a key that cosign made or imported, put in place before
// `keys init`, becomes the release key.
func TestWeUseCosignsKey(t *testing.T) {
	for how, files := range map[string]func(b *bench) string{
		"cosign generate-key-pair": func(b *bench) string {
			b.must(b.sigstore("generate-key-pair", "--output-key-prefix", "made"))
			return "made"
		},
		"cosign import-key-pair": func(b *bench) string {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				b.t.Fatal(err)
			}
			der, err := x509.MarshalPKCS8PrivateKey(key)
			if err != nil {
				b.t.Fatal(err)
			}
			b.put("plain.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
			b.must(b.sigstore("import-key-pair", "--key", "plain.pem", "--output-key-prefix", "made", "--yes"))
			return "made"
		},
	} {
		t.Run(how, func(t *testing.T) {
			b := newBench(t)
			prefix := files(b)
			if err := os.Mkdir(b.path("theirs"), 0o700); err != nil {
				t.Fatal(err)
			}
			b.put("theirs/release.key", b.get(prefix+".key"))
			b.must(b.release("keys", "init", "theirs"))
			if b.get("theirs/release.pub") != b.get(prefix+".pub") {
				t.Error("release.pub is not the public key that cosign wrote")
			}
			b.put("notes.txt", "what changed\n")
			b.must(b.release("sign", "--keys", "theirs", "notes.txt"))
			theirs, ours := b.verifyBlob("theirs", "notes.txt")
			b.judged("signed by a key of "+how, theirs, ours, accepts, accepts)
			theirs, ours = b.verifyBlob("keys", "notes.txt")
			b.judged("signed by a key of "+how+": another key", theirs, ours, refuses, refuses)
		})
	}
}
