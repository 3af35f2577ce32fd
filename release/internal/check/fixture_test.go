package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
	"github.com/nox-mesh/nox-mesh/release/internal/attest"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
	"github.com/nox-mesh/nox-mesh/release/internal/repository"
)

// A publisher has keys, and signs databases.
type publisher struct {
	*keys.PackageKey
	policy *trust.Policy
	dir    string
}

func secret() ([]byte, error) { return []byte("correct horse"), nil }

func newPublisher(t *testing.T) publisher {
	t.Helper()
	p := publisher{dir: filepath.Join(t.TempDir(), "keys")}
	if _, err := keys.Init(p.dir, []byte("correct horse"), time.Now()); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.PackageKey, err = keys.OpenPackage(p.dir, secret); err != nil {
		t.Fatal(err)
	}
	if p.policy, err = trust.LoadDir(p.dir); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p publisher) Sign(message io.Reader, date time.Time) ([]byte, error) {
	return keys.SignPackage(p.PackageKey, message, date)
}

func (p publisher) Verify(message io.Reader, signature []byte) error {
	_, err := p.policy.VerifyPackage(message, signature, trust.Times{Clock: time.Now()})
	return err
}

// signed is the OpenPGP signature of content.
func (p publisher) signed(t *testing.T, content []byte) []byte {
	t.Helper()
	sig, err := p.Sign(bytes.NewReader(content), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

// shown is a release of p's with everything that witnesses are shown, and a
// reading that found it good. Its programs are but words.
func (p publisher) shown(t *testing.T, architectures ...string) *reading {
	t.Helper()
	r := &reading{Options: Options{Policy: p.policy}, Listing: Listing{dir: filepath.Join(t.TempDir(), "a release")}, sums: map[string]string{}, programs: map[string]map[string]program{}}
	m := Manifest{Schema: 1, Version: "1.0.0", Counter: 1700000000, Go: "go1.26.0"}
	key, err := keys.Open(p.dir, keys.ReleaseKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	statement := func(name string, s attest.Statement) {
		b, err := attest.Sign(key, s)
		if err != nil {
			t.Fatal(err)
		}
		put(t, r, name, b)
	}
	var subjects []attest.Subject
	for _, machine := range architectures {
		r.report.Architectures = append(r.report.Architectures, machine)
		r.programs[machine] = map[string]program{}
		var files []string
		for _, name := range []string{"nox-mesh-controller", "nox-mesh-host", "nox-mesh-keyring"} {
			goarch := map[string]string{"aarch64": "arm64", "x86_64": "amd64"}[machine]
			if packages[name] == "" {
				goarch = "all"
			}
			dir := t.TempDir()
			made, err := arch.Write(t.Context(), dir, arch.Package{Info: &nfpm.Info{
				Name: name, Arch: goarch, Version: "1.0.0", Release: "1", Description: "a test", License: "MIT", MTime: time.Unix(1700000000, 0),
			}})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, made.FileName())
			files = append(files, file)
			if err := os.WriteFile(file+".sig", p.signed(t, get(t, file)), 0o644); err != nil {
				t.Fatal(err)
			}
			if program := packages[name]; program != "" {
				of := attest.Program{Name: program, SHA256: sum([]byte(machine + program))}
				r.programs[machine][program] = struct{ sha256, in string }{of.SHA256, file}
				statement(SBOMStatementName(program, m.Version, machine), attest.StateSBOM([]byte(`{}`), of))
			}
		}
		repo := filepath.Join(r.dir, repositoryName(machine))
		if err := os.MkdirAll(filepath.Dir(repo), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := repository.Add(t.Context(), repo, files, repository.Options{Signer: p, Verifier: p}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{m.floorName(machine), m.bundleName(machine)} {
			put(t, r, name, []byte(name))
			subjects = append(subjects, attest.Subject{Name: name, SHA256: sum([]byte(name))})
		}
		for _, file := range files {
			subjects = append(subjects, attest.Subject{Name: path.Join(repositoryName(machine), filepath.Base(file)), SHA256: sum(get(t, file))})
		}
	}
	put(t, r, ManifestName, []byte("the list"))
	put(t, r, SumsName, []byte("the sums"))
	s, err := attest.StateProvenance(attest.Build{Version: m.Version}, subjects)
	if err != nil {
		t.Fatal(err)
	}
	statement(ProvenanceName(m.Version), s)
	signed := []string{ManifestName, SumsName}
	for _, machine := range architectures {
		signed = append(signed, m.floorName(machine))
	}
	for _, name := range signed {
		sig, err := trust.Sign(key, digest.FromBytes(get(t, filepath.Join(r.dir, name))))
		if err != nil {
			t.Fatal(err)
		}
		put(t, r, name+trust.SignatureSuffix, sig)
	}
	if r.Listing, err = List(r.dir); err != nil {
		t.Fatal(err)
	}
	for name, size := range r.files {
		if !strings.HasPrefix(name, ManifestName) && !strings.HasPrefix(name, SumsName) {
			m.Files = append(m.Files, File{name, size, sum(get(t, filepath.Join(r.dir, name)))})
		}
	}
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	r.manifest = m
	if err := r.digests(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// relisted is the repository of r for x86_64 with another signature of
// nox-mesh-host, as p would have listed it.
func (p publisher) relisted(t *testing.T, r *reading, sig []byte) map[string][]byte {
	t.Helper()
	var files []string
	dir, repo := t.TempDir(), filepath.Join(r.dir, repositoryName("x86_64"))
	found, err := filepath.Glob(filepath.Join(repo, "*.pkg.tar.zst"))
	if err != nil || len(found) != 3 {
		t.Fatal(found, err)
	}
	for _, from := range found {
		to := filepath.Join(dir, filepath.Base(from))
		files = append(files, to)
		s := get(t, from+".sig")
		if strings.Contains(from, "nox-mesh-host") {
			s = sig
		}
		for name, b := range map[string][]byte{to: get(t, from), to + ".sig": s} {
			if err := os.WriteFile(name, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	made := filepath.Join(t.TempDir(), "repo")
	if _, err := repository.Add(t.Context(), made, files, repository.Options{Signer: p, Verifier: lenient{}}); err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, name := range []string{"nox-mesh.db", "nox-mesh.db.sig"} {
		out["arch/x86_64/"+name] = get(t, filepath.Join(made, name))
	}
	return out
}

// lenient takes any signature.
type lenient struct{}

func (lenient) Verify(io.Reader, []byte) error { return nil }

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// put writes a file of the release, in a new one: names may be hard links.
func put(t *testing.T, r *reading, name string, b []byte) {
	t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
