package check

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// The files that are about the release; each is signed by the file beside it.
const (
	ManifestName = "release.json"
	SumsName     = "SHA256SUMS"
)

const (
	// MaxManifest bounds release.json and SHA256SUMS, in bytes.
	MaxManifest = 4 << 20
	// MaxCounter is the latest time a USTAR header can say, in seconds.
	MaxCounter = 1<<33 - 1
)

// A Manifest is release.json: what a release consists of.
type Manifest struct {
	Schema  int    `json:"schema"`
	Version string `json:"version"`
	// Channel is "stable", or "testing" for a pre-release.
	Channel string `json:"channel"`
	// Counter grows with each release; bundles carry the same.
	Counter uint64 `json:"counter"`
	// Go is the toolchain that gives the same bytes again.
	Go string `json:"go"`
	// Compressor is the module, with its version, that packed them.
	Compressor string `json:"compressor"`
	// Files are all files but release.json, SHA256SUMS and their signatures, by
	// name; a name is relative to the directory.
	Files []File `json:"files"`
}

// A File is one file of a release.
type File struct {
	Name string `json:"name"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// SHA256 is in hex.
	SHA256 string `json:"sha256"`
}

// Channel is whom a version is for.
func Channel(version string) string {
	if strings.Contains(version, "-") {
		return "testing"
	}
	return "stable"
}

// Encode writes release.json.
func (m Manifest) Encode() ([]byte, error) {
	var b bytes.Buffer
	err := cli.JSON(&b, m)
	return b.Bytes(), err
}

// Sums writes SHA256SUMS, as sha256sum(1) reads it.
func (m Manifest) Sums() []byte {
	var b bytes.Buffer
	for _, f := range m.Files {
		fmt.Fprintf(&b, "%s  %s\n", f.SHA256, f.Name)
	}
	return b.Bytes()
}

// Names are the names of all files of the release.
func (m Manifest) Names() []string {
	var out []string
	for _, f := range m.Files {
		out = append(out, f.Name)
	}
	for _, name := range []string{ManifestName, SumsName} {
		out = append(out, name, name+trust.SignatureSuffix)
	}
	return out
}

// Architectures are those the release has a tarball for, sorted.
func (m Manifest) Architectures() []string {
	var out []string
	for _, f := range m.Files {
		arch, ok := strings.CutPrefix(f.Name, "nox-mesh-host-"+m.Version+"-linux-")
		if arch, end := strings.CutSuffix(arch, ".tar.gz"); ok && end {
			out = append(out, arch)
		}
	}
	slices.Sort(out)
	return out
}

// ParseManifest reads what Encode wrote, and nothing that could be read in two
// ways.
func ParseManifest(b []byte) (Manifest, error) {
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Manifest{}, fault.Refusedf("it is not a list of a release: %w", err)
	}
	if again, err := m.Encode(); err != nil || !bytes.Equal(again, b) {
		return Manifest{}, fault.Refusedf("it is not written as mesh-release writes it")
	}
	if m.Channel != Channel(m.Version) {
		return Manifest{}, fault.Refusedf("it says channel %q of version %q", m.Channel, m.Version)
	}
	if m.Schema != 1 || m.Counter > MaxCounter {
		return Manifest{}, fault.Refusedf("schema %d, counter %d: this mesh-release does not know it", m.Schema, m.Counter)
	}
	for i, f := range m.Files {
		sum, err := hex.DecodeString(f.SHA256)
		switch {
		case !filepath.IsLocal(f.Name) || filepath.Clean(f.Name) != f.Name || strings.ContainsAny(f.Name, "\n\\"):
			return Manifest{}, fault.Refusedf("it lists %q, which is no plain name", f.Name)
		case i > 0 && m.Files[i-1].Name >= f.Name:
			return Manifest{}, fault.Refusedf("it lists %q twice, or not in order", f.Name)
		case err != nil || len(sum) != 32 || hex.EncodeToString(sum) != f.SHA256 || f.Size < 0:
			return Manifest{}, fault.Refusedf("it says no size and SHA-256 of %q", f.Name)
		}
	}
	return m, nil
}

// ReadManifest reads the release.json of the release in dir, which must be
// signed by a trusted key.
func ReadManifest(dir string, p *trust.Policy) (Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	for _, name := range []string{path, path + trust.SignatureSuffix} {
		// A pipe in its place would hold us up.
		if fi, err := os.Lstat(name); err == nil && !fi.Mode().IsRegular() {
			return Manifest{}, fault.Refusedf("cannot read release: %q is not a regular file", name)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return Manifest{}, fmt.Errorf("cannot read release: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxManifest+1))
	if err != nil {
		return Manifest{}, fmt.Errorf("cannot read release: %w", err)
	}
	if len(b) > MaxManifest {
		return Manifest{}, fault.Refusedf("cannot read release: %q has more than %d bytes", path, MaxManifest)
	}
	if err := verifyBytes(path, b, p); err != nil {
		return Manifest{}, err
	}
	m, err := ParseManifest(b)
	if err != nil {
		return Manifest{}, fault.Refusedf("cannot read release: %q: %w", path, err)
	}
	return m, nil
}

func (r *reading) readManifest(context.Context) error {
	for _, name := range []string{ManifestName, ManifestName + trust.SignatureSuffix} {
		if !r.Has(name) {
			return bad(name, "it is not there, so this is no finished release")
		}
	}
	m, err := ReadManifest(r.dir, r.Policy)
	if err != nil {
		return wrong(ManifestName, err)
	}
	b, err := r.Read(ManifestName, MaxManifest)
	if err == nil {
		err = r.written(ManifestName, digest.FromBytes(b))
	}
	if err != nil {
		return err
	}
	r.manifest = m
	r.report.Version, r.report.Counter, r.report.Architectures = m.Version, m.Counter, m.Architectures()
	r.tell("release.json", 1, "signature, form")
	return nil
}

func (r *reading) readSums(context.Context) error {
	b, err := r.Read(SumsName, MaxManifest)
	if err != nil {
		return err
	}
	if err := verifyBytes(filepath.Join(r.dir, SumsName), b, r.Policy); err != nil {
		return wrong(SumsName, err)
	}
	if err := r.written(SumsName, digest.FromBytes(b)); err != nil {
		return err
	}
	if !bytes.Equal(b, r.manifest.Sums()) {
		return bad(SumsName, "it does not say what %s says", ManifestName)
	}
	r.tell("SHA256SUMS", 1, "signature, says what release.json says")
	return nil
}
