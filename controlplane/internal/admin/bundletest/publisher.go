// Package bundletest makes signed bundles for tests.
package bundletest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A Publisher signs bundles.
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
	if err := os.MkdirAll(l.AdminTrust(), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(l.AdminTrust(), "publisher.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}

// Spec is a bundle of the name with a declaration that names a file for each of
// the contents.
func (p *Publisher) Spec(name string, counter uint64, contents ...string) bundle.Spec {
	spec := bundle.Spec{Name: name, Version: fmt.Sprintf("1.0.%d", counter), Counter: counter, Architecture: "x86_64"}
	d := bundle.Declaration{Title: "declaration.json"}
	var resources []string
	for i, c := range contents {
		sum := digest.FromString(c)
		resources = append(resources, fmt.Sprintf(`{"id":"f%d","type":"file","path":"/srv/%s-%d","source":%q}`, i, name, i, sum))
		d.Needs = append(d.Needs, sum)
		spec.Payload = append(spec.Payload, bundle.Blob{Digest: sum, Size: int64(len(c)), Title: fmt.Sprint("f", i),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(c)), nil }})
	}
	d.Bytes = fmt.Appendf(nil, `{"schema":1,"name":"x","resources":[%s]}`, strings.Join(resources, ","))
	spec.Declarations = []bundle.Declaration{d}
	spec.Signers = append(spec.Signers, p.key)
	return spec
}

// Build writes the bundle to the file at path.
func Build(ctx context.Context, path string, spec bundle.Spec) error {
	_, err := bundle.Build(ctx, path, spec)
	return err
}
