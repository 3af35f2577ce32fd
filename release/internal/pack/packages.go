package pack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
	"github.com/nox-mesh/nox-mesh/release/internal/arch/product"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
	"github.com/nox-mesh/nox-mesh/release/internal/repository"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
)

// A layout lays a package out under dir.
type layout func(dir string, s product.Spec) (arch.Package, error)

// packages packs the programs for pacman, signs the packages, and puts them
// into the signed repository of the architecture: arch/ARCH below the release.
func (p *packing) packages(ctx context.Context, architecture string, programs map[string]Program) error {
	ring, err := keys.PacmanKeyring(p.Signer.Roots)
	if err != nil {
		return err
	}
	staging := filepath.Join(p.work, "packages-"+architecture)
	if err := durable.MkdirAll(staging, 0o700); err != nil {
		return fmt.Errorf("cannot pack for pacman: %w", err)
	}
	var files []string
	pack := func(spec product.Spec, lay layout) error {
		file, err := p.pkg(ctx, staging, spec, lay)
		files = append(files, file)
		return err
	}
	for _, of := range []struct {
		id  string
		lay layout
	}{{"mesh-host", product.Host}, {"mesh-controller", product.Controller}} {
		binary, err := p.copy(programs[of.id])
		if err != nil {
			return err
		}
		spec := p.spec(architecture)
		spec.Binary, spec.Texts = binary, p.texts[of.id]
		if err := pack(spec, of.lay); err != nil {
			return err
		}
	}
	err = pack(p.spec(architecture), func(dir string, s product.Spec) (arch.Package, error) {
		return product.Keys(dir, s, product.Keyring{GPG: ring.GPG, Trusted: ring.Trusted, Revoked: ring.Revoked})
	})
	if err != nil {
		return err
	}
	slices.Sort(files)
	to := filepath.Join(p.dir, "arch", architecture)
	if err := durable.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("cannot publish packages: %w", err)
	}
	if _, err := repository.Add(ctx, to, files, repository.Options{
		Signer: p.Signer.Packages, Verifier: signing.Verifier{Policy: p.Signer.Policy},
	}); err != nil {
		return err
	}
	return p.addAll(filepath.Join("arch", architecture))
}

// spec is what all packages have in common.
func (p *packing) spec(architecture string) product.Spec {
	return product.Spec{
		Version: p.Version, Architecture: architecture, Time: p.time(), License: p.license, Roots: p.Signer.Roots,
	}
}

// pkg packs one package into staging and signs it.
func (p *packing) pkg(ctx context.Context, staging string, spec product.Spec, lay layout) (string, error) {
	dir, err := os.MkdirTemp(p.work, "root-*")
	if err != nil {
		return "", fmt.Errorf("cannot pack for pacman: %w", err)
	}
	laid, err := lay(dir, spec)
	if err != nil {
		return "", err
	}
	m, err := arch.Write(ctx, staging, laid)
	if err != nil {
		return "", err
	}
	file := filepath.Join(staging, m.FileName())
	return file, p.Signer.Package(file, p.time())
}
