package check

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestASignatureHasOneSpelling: nothing can be added to one, and none is of another
// file.
func TestASignatureHasOneSpelling(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content := digest.FromString("a file")
	good, err := trust.Sign(key, content)
	if err != nil {
		t.Fatal(err)
	}
	if err := writtenFor(good, content); err != nil {
		t.Fatal(err)
	}
	change := func(from, to string) []byte {
		t.Helper()
		if !bytes.Contains(good, []byte(from)) {
			t.Fatalf("no %s in %s", from, good)
		}
		return bytes.Replace(good, []byte(from), []byte(to), 1)
	}
	payload := `{"_type":"https://in-toto.io/Statement/v1","predicate":{},"predicateType":"https://sigstore.dev/cosign/sign/v1","subject":[{"digest":{"sha256":"` + content.Encoded() + `"}}]}`
	coded := base64.StdEncoding.EncodeToString([]byte(payload))
	spaced := base64.StdEncoding.EncodeToString([]byte(payload + " "))
	for what, b := range map[string][]byte{
		"nothing":              nil,
		"a line end":           append(bytes.Clone(good), '\n'),
		"a blank before":       append([]byte(" "), good...),
		"a second document":    append(bytes.Clone(good), good...),
		"a blank within":       change(`"mediaType":`, `"mediaType": `),
		"a key more":           change(`"mediaType":`, `"note":"mine","mediaType":`),
		"a key id":             change(`{"sig":`, `{"keyid":"","sig":`),
		"a statement's blank":  change(coded, spaced),
		"another media type":   change(".v0.3+json", ".v0.2+json"),
		"somebody's text":      []byte("my thesis"),
		"of cosign sign-blob":  []byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","messageSignature":{}}`),
		"of more than it says": change(`"signatures":[`, `"signatures":[{"sig":"AAAA"},`),
	} {
		if err := writtenFor(b, content); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "not written as mesh-release writes a signature") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := writtenFor(good, digest.FromString("another")); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "another file") {
		t.Errorf("%v", err)
	}
}

// TestASignatureThatNoListNamesIsOne: of a release of other keys every file is
// held, those that its list cannot name as well.
func TestASignatureThatNoListNamesIsOne(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	list := manifest(t, func(m *Manifest) { m.Files = nil })
	m, err := ParseManifest(list)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(of []byte) []byte {
		t.Helper()
		b, err := trust.Sign(key, digest.FromBytes(of))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for what, c := range map[string]struct {
		list, sums []byte
		says       string
	}{
		"signatures of a stranger":  {sign(list), sign(m.Sums()), ""},
		"none of the list":          {nil, sign(m.Sums()), ""},
		"a text of that size":       {sign(list), bytes.Repeat([]byte("x"), len(sign(list))), `"SHA256SUMS.sigstore.json": it is not written`},
		"a text beside the list":    {[]byte("mine"), sign(m.Sums()), `"release.json.sigstore.json": it is not written`},
		"the other one's signature": {sign(list), sign(list), `"SHA256SUMS.sigstore.json": it is about another file`},
	} {
		dir := t.TempDir()
		for name, b := range map[string][]byte{
			ManifestName: list, ManifestName + trust.SignatureSuffix: c.list, SumsName: m.Sums(), SumsName + trust.SignatureSuffix: c.sums,
		} {
			if b == nil && strings.HasSuffix(name, trust.SignatureSuffix) {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, err := List(dir)
		if err != nil {
			t.Fatal(err)
		}
		switch err := l.HoldAll(m); {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case c.says != "" && (fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, want %s", what, err, c.says)
		}
	}
}
