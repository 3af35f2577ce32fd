package claim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestTheClaimOfOurOwnSignature(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b, err := trust.Sign(key, digest.FromString("a file"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := trust.KeyID(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(b)
	if err != nil || got.Key != id || len(got.Signature) < 60 {
		t.Errorf("%+v, %v", got, err)
	}
	if !strings.Contains(string(b), base64.StdEncoding.EncodeToString(got.Signature)) {
		t.Error("the signature is not that of the bundle")
	}
}

func TestWhatIsNoClaim(t *testing.T) {
	hint := base64.StdEncoding.EncodeToString(make([]byte, 32))
	key := `"verificationMaterial":{"publicKey":{"hint":"` + hint + `"}}`
	for name, c := range map[string]struct{ text, says string }{
		"nothing":           {``, "no sigstore bundle"},
		"another document":  {`{}`, "it has 0 signatures"},
		"two signatures":    {`{` + key + `,"dsseEnvelope":{"signatures":[{"sig":"AA=="},{"sig":"AA=="}]}}`, "2 signatures"},
		"no key":            {`{"dsseEnvelope":{"signatures":[{"sig":"AA=="}]}}`, "names no public key"},
		"a short key":       {`{"verificationMaterial":{"publicKey":{"hint":"AAAA"}},"dsseEnvelope":{"signatures":[{"sig":"AA=="}]}}`, "names no public key"},
		"cosign sign-blob":  {`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json",` + key + `,"messageSignature":{"messageDigest":{"algorithm":"SHA2_256","digest":"AA=="},"signature":"AA=="}}`, "of the file's bytes"},
		"not base64":        {`{` + key + `,"dsseEnvelope":{"signatures":[{"sig":"?"}]}}`, "no sigstore bundle"},
		"a list of bundles": {`[]`, "no sigstore bundle"},
	} {
		_, err := Read([]byte(c.text))
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
