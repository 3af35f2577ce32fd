package attest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// publisher makes a release key and a policy with a root that names it.
func publisher(t testing.TB) (*ecdsa.PrivateKey, *trust.Policy) {
	t.Helper()
	var made []*ecdsa.PrivateKey
	var named []trust.Key
	for _, scope := range []trust.Scope{trust.ScopeRoot, trust.ScopeRelease} {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		n, err := trust.NewKey(k.Public(), scope)
		if err != nil {
			t.Fatal(err)
		}
		made, named = append(made, k), append(named, n)
	}
	root, err := trust.SignRoot(trust.NewRoot(nil, named), made[0])
	if err != nil {
		t.Fatal(err)
	}
	p, err := trust.FromRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	return made[1], p
}

// example builds a program of this project that stands on several modules.
func example(t testing.TB) ([]byte, string, Program) {
	t.Helper()
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go command is not here")
	}
	path := filepath.Join(t.TempDir(), "program")
	build := exec.Command(tool, "build", "-trimpath", "-buildvcs=false", "-o", path, "../arch/packone")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b, path, Program{Name: "mesh-host", Version: "1.0.0-rc.1", SHA256: fmt.Sprintf("%x", sha256.Sum256(b)), Time: time.Unix(1700000000, 0)}
}

// TestSBOMSaysWhatTheGoCommandSays asks "go version -m" for the same.
func TestSBOMSaysWhatTheGoCommandSays(t *testing.T) {
	binary, path, p := example(t)
	out, err := exec.Command("go", "version", "-m", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	var goarch string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && strings.HasPrefix(f[0], path):
			want["std "+f[1]] = ""
		case f[0] == "dep":
			raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(f[3], "h1:"))
			if err != nil {
				t.Fatal(err)
			}
			want[f[1]+" "+f[2]] = hex.EncodeToString(raw)
		case f[0] == "build" && strings.HasPrefix(f[1], "GOARCH="):
			goarch = strings.TrimPrefix(f[1], "GOARCH=")
		}
	}
	if len(want) < 4 {
		t.Fatalf("go version -m says\n%s", out)
	}
	sbom, err := SBOM(binary, p)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		BomFormat, SpecVersion, SerialNumber string
		Metadata                             struct {
			Timestamp string
			Component struct {
				Name, Version string
				Hashes        []struct{ Alg, Content string }
				Properties    []struct{ Name, Value string }
			}
		}
		Components []struct {
			Name, Version, Purl string
			Ref                 string `json:"bom-ref"`
			Hashes              []struct{ Alg, Content string }
		}
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	if err := json.Unmarshal(sbom, &doc); err != nil {
		t.Fatal(err)
	}
	var refs []string
	for _, c := range doc.Components {
		key, sum := c.Name+" "+c.Version, ""
		if len(c.Hashes) == 1 && c.Hashes[0].Alg == "SHA-256" {
			sum = c.Hashes[0].Content
		}
		if had, ok := want[key]; !ok || had != sum {
			t.Errorf("the SBOM says %q, %q; go says %q", key, sum, had)
		}
		delete(want, key)
		if c.Name != "std" && c.Purl != "pkg:golang/"+c.Name+"@"+strings.ReplaceAll(c.Version, "+", "%2B")+"?type=module" {
			t.Errorf("purl %q", c.Purl)
		}
		refs = append(refs, c.Ref)
	}
	for missing := range want {
		t.Errorf("the SBOM does not say %q", missing)
	}
	m := doc.Metadata
	if doc.BomFormat != "CycloneDX" || doc.SpecVersion != "1.6" || doc.SerialNumber != "" || m.Timestamp != "2023-11-14T22:13:20Z" ||
		m.Component.Name != "mesh-host" || m.Component.Version != "1.0.0-rc.1" || m.Component.Hashes[0].Content != p.SHA256 ||
		!slices.Contains(m.Component.Properties, struct{ Name, Value string }{"cdx:gomod:build:env:GOARCH", goarch}) {
		t.Errorf("%+v", m)
	}
	if len(doc.Dependencies) == 0 || !slices.Equal(doc.Dependencies[0].DependsOn, refs) {
		t.Errorf("dependencies %+v", doc.Dependencies)
	}
	if again, err := SBOM(binary, p); err != nil || !bytes.Equal(again, sbom) {
		t.Errorf("not the same again: %v", err)
	}
	if _, err := SBOM([]byte("#!/bin/sh\n"), p); err == nil {
		t.Error("a script has an SBOM")
	}
}

// An oracle verifies what the library that cosign uses says was signed.
type oracle struct{ key *ecdsa.PublicKey }

func (o oracle) Verify(_ context.Context, data, sig []byte) error {
	sum := sha256.Sum256(data)
	if !ecdsa.VerifyASN1(o.key, sum[:], sig) {
		return errors.New("it does not verify")
	}
	return nil
}
func (o oracle) KeyID() (string, error)   { return "", nil }
func (o oracle) Public() crypto.PublicKey { return o.key }

// TestTheLibraryOfCosignReadsIt has the DSSE library that cosign uses read and
// verify the envelope.
func TestTheLibraryOfCosignReadsIt(t *testing.T) {
	key, policy := publisher(t)
	binary, _, p := example(t)
	sbom, err := SBOM(binary, p)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Sign(key, StateSBOM(sbom, p))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Sign(key, StateSBOM(sbom, p)); err != nil || !bytes.Equal(again, b) {
		t.Errorf("not the same again: %v", err)
	}
	var file struct {
		MediaType    string
		DSSEEnvelope dsse.Envelope
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	ev, err := dsse.NewEnvelopeVerifier(oracle{&key.PublicKey})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ev.Verify(context.Background(), &file.DSSEEnvelope); err != nil {
		t.Error(err)
	}
	if file.MediaType != "application/vnd.dev.sigstore.bundle.v0.3+json" {
		t.Error(file.MediaType)
	}
	payload, err := file.DSSEEnvelope.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	var st struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct{ Digest map[string]string }
	}
	if err := json.Unmarshal(payload, &st); err != nil {
		t.Fatal(err)
	}
	if st.Type != "https://in-toto.io/Statement/v1" || st.PredicateType != "https://cyclonedx.org/bom" || st.Subject[0].Digest["sha256"] != p.SHA256 {
		t.Errorf("%+v", st)
	}
	s, err := Verify(b, policy)
	if err != nil {
		t.Fatal(err)
	}
	if err := HoldSBOM(s, sbom, p); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheReleaseKeyAttests(t *testing.T) {
	key, policy := publisher(t)
	stranger, others := publisher(t)
	s := Statement{PredicateType: "https://example.test/a", Subjects: []Subject{{"a", strings.Repeat("0", 64)}}, Predicate: json.RawMessage(`{"a":1}`)}
	b, err := Sign(key, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(b, policy); err != nil {
		t.Error(err)
	}
	if _, err := Verify(b, others); fault.KindOf(err) != fault.Refused {
		t.Errorf("others: %v", err)
	}
	theirs, err := Sign(stranger, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(theirs, policy); fault.KindOf(err) != fault.Refused {
		t.Errorf("a stranger: %v", err)
	}
	loose, err := trust.FromKeys(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(b, loose); err != nil {
		t.Errorf("the key itself is trusted: %v", err)
	}
	for i := range b {
		for _, bit := range []byte{1, 2, 0x20} {
			c := slices.Clone(b)
			c[i] ^= bit
			if _, err := Verify(c, policy); fault.KindOf(err) != fault.Refused {
				t.Errorf("byte %d: %v", i, err)
			}
		}
	}
	if _, err := Sign(key, Statement{Predicate: json.RawMessage(`{}`)}); err == nil {
		t.Error("a statement about nothing")
	}
}

func TestProvenanceIsOfThisBuildAndTheseFiles(t *testing.T) {
	b := Build{
		Version: "1.0.0", Counter: 1700000000, Architectures: []string{"x86_64"}, Go: "go1.26.0", Commit: strings.Repeat("ab", 20),
		Programs: map[string]Flags{"mesh-host": {Main: "./host", Env: []string{"CGO_ENABLED=0"}, Flags: []string{"-trimpath"}, LDFlags: []string{"-s <&>"}}},
	}
	files := []Subject{{"b", strings.Repeat("1", 64)}, {"a", strings.Repeat("0", 64)}}
	s, err := StateProvenance(b, files)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(s.Predicate), `"gitCommit":"abab`) || !strings.Contains(string(s.Predicate), `"-s <&>"`) {
		t.Errorf("%s", s.Predicate)
	}
	if commit, err := HoldProvenance(s, Build{Version: b.Version, Counter: b.Counter, Architectures: b.Architectures, Go: b.Go}, files); err != nil || commit != b.Commit {
		t.Errorf("%q, %v", commit, err)
	}
	for what, change := range map[string]func(*Build){
		"version": func(b *Build) { b.Version = "1.0.1" }, "counter": func(b *Build) { b.Counter++ },
		"architecture": func(b *Build) { b.Architectures = []string{"aarch64"} }, "go": func(b *Build) { b.Go = "go1.26.1" },
	} {
		other := b
		change(&other)
		if _, err := HoldProvenance(s, other, files); err == nil {
			t.Errorf("another %s", what)
		}
	}
	for what, other := range map[string][]Subject{
		"less": files[:1], "more": append(slices.Clone(files), Subject{"c", strings.Repeat("2", 64)}), "none": nil,
		"another": {{"a", strings.Repeat("0", 64)}, {"b", strings.Repeat("2", 64)}},
	} {
		if _, err := HoldProvenance(s, b, other); err == nil {
			t.Errorf("%s", what)
		}
	}
}

func FuzzVerify(f *testing.F) {
	key, policy := publisher(f)
	b, err := Sign(key, Statement{PredicateType: "a", Subjects: []Subject{{"a", "b"}}, Predicate: json.RawMessage(`{}`)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, c []byte) {
		if _, err := Verify(c, policy); err == nil && !bytes.Equal(c, b) {
			t.Errorf("accepted %q", c)
		}
	})
}
