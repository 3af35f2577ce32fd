// Package seedtest makes releases for tests of what is served to new machines:
// lists that are signed, and files that are but words.
package seedtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/seed"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A Publisher signs releases.
type Publisher struct{ key *ecdsa.PrivateKey }

// New makes a publisher with a new key.
func New() (*Publisher, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return &Publisher{key}, err
}

// TrustedBy makes the machine trust the publisher.
func (p *Publisher) TrustedBy(l layout.Layout) error {
	der, err := x509.MarshalPKIXPublicKey(&p.key.PublicKey)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(l.AdminTrust(), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(l.AdminTrust(), "publisher.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}

// A Release is what a bundle brings for new machines: files by name, the signed
// list among them.
type Release struct {
	Name, Version, Architecture string
	Counter                     uint64
	Files                       map[string]string

	key *ecdsa.PrivateKey
}

// Release makes version 1.0.COUNTER.
func (p *Publisher) Release(architecture string, counter uint64) (*Release, error) {
	r := &Release{Name: "nox-mesh", Version: fmt.Sprintf("1.0.%d", counter), Architecture: architecture, Counter: counter, Files: map[string]string{}, key: p.key}
	repository := "arch/" + architecture + "/"
	for _, name := range []string{
		repository + "nox-mesh-host-" + r.Version + "-1-" + architecture + ".pkg.tar.zst", repository + "nox-mesh-host-" + r.Version + "-1-" + architecture + ".pkg.tar.zst.sig",
		repository + "nox-mesh.db", repository + "nox-mesh.db.sig", repository + "nox-mesh.gpg",
		"floor/nox-mesh-host-" + r.Version + "-linux-" + architecture + ".tar.gz", "floor/nox-mesh-host-" + r.Version + "-linux-" + architecture + ".tar.gz.sigstore.json",
	} {
		r.Files[name] = fmt.Sprintf("%s of %s", name, r.Version)
	}
	return r, r.Sign()
}

// Sign lists the files as they are now, and signs the list.
func (r *Release) Sign() error {
	l := seed.List{Name: r.Name, Version: r.Version, Counter: r.Counter, Architecture: r.Architecture, PackageKey: strings.Repeat("ab", 20)}
	for name, text := range r.Files {
		if !strings.HasPrefix(name, seed.ListName) {
			l.Files = append(l.Files, seed.File{Name: name, Size: int64(len(text)), SHA256: digest.FromString(text).Encoded()})
		}
	}
	slices.SortFunc(l.Files, func(a, b seed.File) int { return strings.Compare(a.Name, b.Name) })
	b, err := l.Encode()
	if err != nil {
		return err
	}
	signature, err := trust.Sign(r.key, digest.FromBytes(b))
	r.Files[seed.ListName], r.Files[seed.ListName+trust.SignatureSuffix] = string(b), string(signature)
	return err
}

// Lay lays the release down in a directory, as the host does: each file by a
// rename.
func (r *Release) Lay(dir string) error {
	for name, text := range r.Files {
		file := filepath.Join(dir, name)
		if err := durable.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := durable.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Bundle is the bundle that brings the release.
func (r *Release) Bundle(ctx context.Context, path string) error {
	spec := bundle.Spec{Name: r.Name, Version: r.Version, Counter: r.Counter, Architecture: r.Architecture}
	d := bundle.Declaration{Title: "declaration.json"}
	var resources []string
	for i, name := range slices.Sorted(maps.Keys(r.Files)) {
		text := r.Files[name]
		sum := digest.FromString(text)
		resources = append(resources, fmt.Sprintf(`{"id":"f%d","type":"file","path":%q,"source":%q}`, i, (layout.Layout{}).ControllerSeed()+"/"+name, sum))
		d.Needs = append(d.Needs, sum)
		spec.Payload = append(spec.Payload, bundle.Blob{Digest: sum, Size: int64(len(text)), Title: name,
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }})
	}
	d.Bytes = fmt.Appendf(nil, `{"schema":1,"name":"x","resources":[%s]}`, strings.Join(resources, ","))
	spec.Declarations = []bundle.Declaration{d}
	spec.Signers = append(spec.Signers, r.key)
	_, err := bundle.Build(ctx, path, spec)
	return err
}

// Built is Bundle's bytes.
func (r *Release) Built(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "seedtest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "b.tar")
	if err := r.Bundle(ctx, path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
