package recipe

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/image"
)

// Given is what the one who builds knows: version and architecture when they are
// not empty, and by title the paths of files and packages and where images are.
// Paths are as they are, not relative to the recipe.
type Given struct {
	Version, Architecture   string
	Files, Packages, Images map[string]string
	// Folders are the files of folders.
	Folders map[string]Tree
}

// Fill gives the recipe what the one who builds knows. After it the recipe is
// complete, or the error says what is missing.
func (r *Recipe) Fill(g Given) error {
	g.Architecture = bundle.Architecture(g.Architecture)
	if g.Version != "" && !bundle.ValidVersion(g.Version) {
		return fault.Usagef("cannot use recipe: %.128q is no version of a bundle", g.Version).
			Hint("letters, digits, \".\", \"_\", \"+\" and \"-\", as in 1.0.0")
	}
	if g.Architecture != "" && !validArchitecture(g.Architecture) {
		return fault.Usagef("cannot use recipe: %.128q is no architecture of a bundle", g.Architecture).
			Hint("give --arch %s or --arch %s", architectures[0], architectures[1])
	}
	if g.Version != "" {
		r.Version = g.Version
	}
	if g.Architecture != "" {
		r.Architecture = g.Architecture
	}
	if r.Version == "" || r.Architecture == "" {
		return fault.Usagef("cannot use recipe: it says no version or no architecture").Hint("give --version and --arch")
	}
	if err := r.fillFiles(maps.Clone(g.Files)); err != nil {
		return err
	}
	if err := r.fillPackages(maps.Clone(g.Packages)); err != nil {
		return err
	}
	if err := r.fillImages(maps.Clone(g.Images)); err != nil {
		return err
	}
	return r.fillFolders(maps.Clone(g.Folders))
}

func (r *Recipe) fillFiles(given map[string]string) error {
	for i := range r.Files {
		f := &r.Files[i]
		if path, ok := given[f.Title]; ok {
			f.Path = path
			delete(given, f.Title)
		} else {
			f.Path = r.beside(f.Path)
		}
		if f.Path == "" {
			return missing("path for file", f.Title).Hint("give --file %s=PATH", f.Title)
		}
	}
	return stranger("file", given)
}

func (r *Recipe) fillPackages(given map[string]string) error {
	for i := range r.Packages {
		p := &r.Packages[i]
		p.Signature = r.beside(p.Signature)
		if path, ok := given[p.Title]; ok {
			// Another package has another signature.
			p.Path, p.Signature = path, ""
			delete(given, p.Title)
		} else {
			p.Path = r.beside(p.Path)
		}
		if p.Path == "" {
			return missing("path for package", p.Title).Hint("give --package %s=PATH", p.Title)
		}
		if p.Signature == "" {
			p.Signature = p.Path + trust.PackageSignatureSuffix
		}
	}
	return stranger("package", given)
}

func (r *Recipe) fillImages(given map[string]string) error {
	for i := range r.Images {
		m := &r.Images[i]
		if from, ok := given[m.Title]; ok {
			ref, err := image.Parse(from)
			if err != nil {
				return fault.Usagef("cannot use recipe: %w", err).Hint("give --image %s=REF: %s", m.Title, image.Forms)
			}
			m.From, m.from = from, ref
			delete(given, m.Title)
			continue
		}
		if m.From == "" {
			return missing("place for image", m.Title).Hint("give --image %s=REF: %s", m.Title, image.Forms)
		}
		ref, err := image.Parse(m.From)
		if err != nil {
			return err
		}
		m.from = ref.In(r.dir)
	}
	return stranger("image", given)
}

// beside is a path of the recipe's, which is relative to it.
func (r *Recipe) beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(r.dir, path)
}

func missing(what, title string) *fault.Error {
	return fault.Usagef("cannot use recipe: it says no %s %q", what, title)
}

// stranger is the error when something is given that the recipe does not name.
func stranger[T any](what string, left map[string]T) error {
	for _, title := range slices.Sorted(maps.Keys(left)) {
		return fault.Usagef("cannot use recipe: the %s %q is given, which it does not name", what, title)
	}
	return nil
}
