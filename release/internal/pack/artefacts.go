package pack

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/release/internal/floor"
	"github.com/nox-mesh/nox-mesh/release/internal/recipe"
	"github.com/nox-mesh/nox-mesh/release/recipes"
)

// floor packs the tarball and signs it.
func (p *packing) floor(host Program) error {
	spec := floor.Spec{
		Version: p.Version, Architecture: host.Architecture, Time: p.time(),
		Host: host.content, License: p.license, Share: p.texts["mesh-host"].Files("mesh-host"), Roots: p.Signer.Roots, Signer: p.Signer.Key,
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
	tree, err := p.seed(architecture, first.Name)
	if err != nil {
		return err
	}
	if err := first.Fill(recipe.Given{
		Version: p.Version, Architecture: architecture, Files: map[string]string{controller.ID: path},
		Folders: map[string]recipe.Tree{"seed": tree},
	}); err != nil {
		return err
	}
	name := fmt.Sprintf("nox-mesh-%s-linux-%s.bundle.tar", p.Version, architecture)
	if _, err := Bundle(ctx, p.Signer, first, p.Counter, filepath.Join(p.dir, name), Ears{}); err != nil {
		return err
	}
	return p.add(name)
}
