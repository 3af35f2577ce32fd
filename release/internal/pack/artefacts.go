package pack

import (
	"context"
	"crypto"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
	"github.com/nox-mesh/nox-mesh/release/internal/arch/product"
	"github.com/nox-mesh/nox-mesh/release/internal/floor"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
	"github.com/nox-mesh/nox-mesh/release/internal/recipe"
	"github.com/nox-mesh/nox-mesh/release/internal/repository"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
	"github.com/nox-mesh/nox-mesh/release/recipes"
)

// floor packs the tarball and signs it.
func (p *packing) floor(host Program) error {
	spec := floor.Spec{
		Version: p.Version, Architecture: host.Architecture, Time: p.time(),
		Host: host.content, License: p.license, Roots: p.Signer.Roots, Signer: p.Signer.Key,
	}
	if err := floor.Write(p.dir, spec); err != nil {
		return err
	}
	if _, err := p.Signer.File(filepath.Join(p.dir, spec.Name())); err != nil {
		return err
	}
	if err := p.add(spec.Name()); err != nil {
		return err
	}
	return p.add(spec.Name() + trust.SignatureSuffix)
}

// firstNode makes the bundle that raises a control plane.
func (p *packing) firstNode(ctx context.Context, architecture string, controller Program) error {
	first, err := recipe.Read(filepath.Join(p.Source, recipes.FirstNode))
	if err != nil {
		return err
	}
	path, err := p.copy(controller)
	if err != nil {
		return err
	}
	if err := first.Fill(p.Version, architecture, map[string]string{controller.ID: path}); err != nil {
		return err
	}
	name := fmt.Sprintf("nox-mesh-%s-linux-%s.bundle.tar", p.Version, architecture)
	if _, err := Bundle(ctx, p.Signer, first, p.Counter, filepath.Join(p.dir, name)); err != nil {
		return err
	}
	return p.add(name)
}

// Bundle builds the bundle of a filled recipe. Its counter is its time as well:
// nothing of a bundle may depend on when it was built.
func Bundle(ctx context.Context, s *signing.Signer, r *recipe.Recipe, counter uint64, out string) (*bundle.Info, error) {
	if err := CheckCounter(counter); err != nil {
		return nil, err
	}
	spec, err := r.Spec(counter)
	if err != nil {
		return nil, err
	}
	spec.Created = timeOf(counter)
	spec.Roots = s.Roots
	spec.Signers = []crypto.Signer{s.Key}
	return bundle.Build(ctx, out, spec)
}

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
	for id, lay := range map[string]func(dir string, s product.Spec) (arch.Package, error){
		"mesh-host":       product.Host,
		"mesh-controller": product.Controller,
		"keyring": func(dir string, s product.Spec) (arch.Package, error) {
			return product.Keys(dir, s, product.Keyring{GPG: ring.GPG, Trusted: ring.Trusted, Revoked: ring.Revoked})
		},
	} {
		file, err := p.pkg(ctx, staging, architecture, programs[id], lay)
		if err != nil {
			return err
		}
		files = append(files, file)
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

// pkg packs one package into staging and signs it.
func (p *packing) pkg(ctx context.Context, staging, architecture string, program Program, lay func(string, product.Spec) (arch.Package, error)) (string, error) {
	dir, err := os.MkdirTemp(p.work, "root-*")
	if err != nil {
		return "", fmt.Errorf("cannot pack for pacman: %w", err)
	}
	spec := product.Spec{
		Version: p.Version, Architecture: architecture, Time: p.time(), License: p.license,
		Texts: p.texts[program.ID], Roots: p.Signer.Roots,
	}
	if program.ID != "" {
		if spec.Binary, err = p.copy(program); err != nil {
			return "", err
		}
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

// copy puts a program, as it was read, where nobody else writes.
func (p *packing) copy(program Program) (string, error) {
	path := filepath.Join(p.work, program.Architecture+"-"+program.ID)
	if _, err := os.Lstat(path); err == nil {
		return path, nil
	}
	return path, durable.WriteFile(path, program.content, 0o755)
}

// addAll takes the files of a directory into the release.
func (p *packing) addAll(dir string) error {
	entries, err := os.ReadDir(filepath.Join(p.dir, dir))
	if err != nil {
		return fmt.Errorf("cannot read back %q: %w", dir, err)
	}
	for _, e := range entries {
		if err := p.add(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
