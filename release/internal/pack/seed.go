package pack

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/seed"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
	"github.com/nox-mesh/nox-mesh/release/internal/recipe"
)

// seed is what the first node's bundle brings along for the next machine, and the
// signed list of it: the packages in their repository, as pacman fetches them, and
// the tarball. Tarball and repository are made by now.
func (p *packing) seed(architecture, bundle string) (recipe.Tree, error) {
	tree := recipe.Tree{}
	keyring, err := p.keyring()
	if err != nil {
		return nil, err
	}
	tree[seed.KeyringName(architecture)] = keyring
	l := seed.List{Name: bundle, Version: p.Version, Counter: p.Counter, Architecture: architecture}
	repository := path.Join("arch", architecture)
	for _, f := range p.files {
		switch {
		case path.Dir(f.Name) == repository && fetched(f.Name):
			tree[f.Name] = filepath.Join(p.dir, f.Name)
		case strings.HasSuffix(strings.TrimSuffix(f.Name, trust.SignatureSuffix), "-linux-"+architecture+".tar.gz"):
			tree[path.Join(seed.FloorFolder, f.Name)] = filepath.Join(p.dir, f.Name)
		}
		if path.Dir(f.Name) == repository && trust.IsPackage(f.Name) && l.PackageKey == "" {
			_, signer, err := trust.VerifyPackageFile(filepath.Join(p.dir, f.Name), p.Signer.Policy, trust.Times{Clock: clock.System.Now()})
			if err != nil {
				return nil, err
			}
			l.PackageKey = signer.Key
		}
	}
	if l.Files, err = listed(tree); err != nil {
		return nil, err
	}
	b, err := l.Encode()
	if err != nil {
		return nil, fault.Failedf("cannot list the seed for %s: %w", architecture, err)
	}
	name := check.SeedName(p.Version, architecture)
	file := filepath.Join(p.dir, name)
	if err := p.Signer.Write(file, b); err != nil {
		return nil, err
	}
	tree[seed.ListName], tree[seed.ListName+trust.SignatureSuffix] = file, file+trust.SignatureSuffix
	if err := p.add(name); err != nil {
		return nil, err
	}
	return tree, p.add(name + trust.SignatureSuffix)
}

// fetched reports whether pacman asks for a file of a repository: the names that
// repo-add(8) gives the databases are for people.
func fetched(name string) bool {
	return !strings.Contains(name, ".db.tar.") && !strings.Contains(name, ".files.tar.")
}

// keyring writes the keys that a machine takes before it takes a package.
func (p *packing) keyring() (string, error) {
	ring, err := keys.PacmanKeyring(p.Signer.Roots)
	if err != nil {
		return "", err
	}
	file := filepath.Join(p.work, keys.KeyringGPG)
	return file, durable.WriteFile(file, ring.GPG, 0o644)
}

// listed describes the files of a tree, by name.
func listed(tree recipe.Tree) (out []seed.File, err error) {
	for name, file := range tree {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read back %q: %w", name, err)
		}
		defer f.Close()
		fi, err := f.Stat()
		if err != nil {
			return nil, fmt.Errorf("cannot read back %q: %w", name, err)
		}
		d, err := digest.SHA256.FromReader(f)
		if err != nil {
			return nil, fmt.Errorf("cannot read back %q: %w", name, err)
		}
		out = append(out, seed.File{Name: name, Size: fi.Size(), SHA256: d.Encoded()})
	}
	slices.SortFunc(out, func(a, b seed.File) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
