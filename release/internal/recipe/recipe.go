// Package recipe turns a recipe, bundle.toml, into what a bundle is built from.
//
//	name         = "nox-mesh"            # of the bundle
//	version      = "1.0.0"               # or from the one who builds
//	architecture = "x86_64"              # or from the one who builds
//	minimum_host = "1.0.0"               # optional
//	declarations = ["control-plane.json"]
//
//	[[file]]
//	title = "mesh-controller"            # its name in the bundle
//	path  = "mesh-controller"            # or from the one who builds
//	compress = true                      # optional: smaller in the bundle
//
//	[[folder]]                           # every file below a directory
//	title = "site"
//	path  = "site"                       # or from the one who builds
//
//	[[package]]                          # for pacman
//	title     = "htop"
//	path      = "htop-3.3.0-1-x86_64.pkg.tar.zst"
//	signature = "htop.sig"               # the path with ".sig" behind it, when it is not said
//
//	[[image]]                            # a container image
//	title = "registry"
//	from  = "oci-archive:registry.tar"   # see image.Reference
//
// Paths are relative to the recipe. Where a declaration must say the digest of
// something that is only known once it was built, it names the thing by its table
// and title, and the digest is put in its place:
//
//	"source": "file:mesh-controller"
//	"source": "package:htop", "signature": "package:htop"
//	"image": "image:registry"
//
// A resource whose source is a folder ("source": "folder:site") stands for many:
// one for each file, with the file's name behind its id and its path. Nothing can be
// after it: no resource has its id.
//
// In the same way "generation": "counter" becomes the counter of the release, so
// that the declaration of each release follows that of the last. Nothing else of
// the document is changed, to the byte: only these members of a resource are looked
// at, and nothing that has their name further down.
//
// What comes out is closed: every digest the declarations name is in it, and is
// what the resource needs there, and everything in it is named by a declaration. A
// package is of the name and the version that it is declared with, and its signature,
// where the publisher made it, is good. A
// declaration with secret content is refused: a bundle is for everybody to read.
// The same recipe, counter and contents give the same Spec, whatever the machine;
// what changes while it is read is found by its digest when the bundle is written.
package recipe

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/release/internal/image"
)

// maxRecipe bounds a recipe, in bytes.
const maxRecipe = 1 << 20

// A Recipe is bundle.toml.
type Recipe struct {
	Name         string    `toml:"name"`
	Version      string    `toml:"version"`
	Architecture string    `toml:"architecture"`
	MinimumHost  string    `toml:"minimum_host"`
	Declarations []string  `toml:"declarations"`
	Files        []File    `toml:"file"`
	Folders      []Folder  `toml:"folder"`
	Packages     []Package `toml:"package"`
	Images       []Image   `toml:"image"`

	dir string
	// trees are the files of each folder that was filled, by its title.
	trees map[string]Tree
}

// A File is a payload of the bundle.
type File struct {
	Title string `toml:"title"`
	Path  string `toml:"path"`
	// Compress: the bundle holds it compressed; the machine gets it as it is.
	Compress bool `toml:"compress"`
}

// A Package is a package for pacman and its detached signature.
type Package struct {
	Title     string `toml:"title"`
	Path      string `toml:"path"`
	Signature string `toml:"signature"`
}

// signatureTitle is what the signature is called in the bundle.
func (p Package) signatureTitle() string { return p.Title + trust.PackageSignatureSuffix }

// An Image is a container image.
type Image struct {
	Title string `toml:"title"`
	From  string `toml:"from"`

	from image.Reference
}

// Read reads the recipe at path: a key that is not known is refused.
func Read(path string) (*Recipe, error) {
	b, err := input.ReadFile(path, maxRecipe)
	if err != nil {
		return nil, fmt.Errorf("cannot read recipe: %w", err)
	}
	r := &Recipe{dir: filepath.Dir(path), trees: map[string]Tree{}}
	meta, err := toml.NewDecoder(bytes.NewReader(b)).Decode(r)
	if err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return nil, fault.Refusedf("cannot read recipe %q: line %d: %s", path, syntax.Position.Line, syntax.Message)
		}
		return nil, fault.Refusedf("cannot read recipe %q: %w", path, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fault.Refusedf("cannot read recipe %q: key %q is not known", path, unknown[0].String())
	}
	// It may be written as Go calls it.
	r.Architecture = bundle.Architecture(r.Architecture)
	return r, r.check(path)
}

func (r *Recipe) check(path string) error {
	if r.Name == "" || len(r.Declarations) == 0 {
		return fault.Refusedf("cannot use recipe %q: it needs a name and declarations", path)
	}
	for _, f := range []struct {
		what, value string
		valid       func(string) bool
	}{
		{"name of a bundle", r.Name, bundle.ValidName},
		{"version of a bundle", r.Version, bundle.ValidVersion},
		{"version of a host", r.MinimumHost, bundle.ValidVersion},
		{"architecture of a bundle", r.Architecture, validArchitecture},
	} {
		if f.value != "" && !f.valid(f.value) {
			return fault.Refusedf("cannot use recipe %q: %.128q is no %s", path, f.value, f.what)
		}
	}
	titles := map[string]bool{}
	for _, title := range r.titles() {
		if !validTitle(title) {
			return fault.Refusedf("cannot use recipe %q: the title %.128q is not plain", path, title)
		}
		if titles[title] {
			return fault.Refusedf("cannot use recipe %q: the title %q is there twice", path, title)
		}
		titles[title] = true
	}
	for _, i := range r.Images {
		if !bundle.ValidImageTitle(i.Title) {
			return fault.Refusedf("cannot use recipe %q: %.128q is no title of an image", path, i.Title).
				Hint("letters and digits, with a \"-\", \".\", \"_\", \":\", \"@\", \"/\" or \"+\" between them")
		}
		if i.From == "" {
			continue
		}
		if _, err := image.Parse(i.From); err != nil {
			return fmt.Errorf("cannot use recipe %q: %w", path, err)
		}
	}
	return nil
}

// titles are all that the bundle will have, but for those of declarations.
func (r *Recipe) titles() []string {
	var all []string
	for _, f := range r.Files {
		all = append(all, f.Title)
	}
	for _, f := range r.Folders {
		all = append(all, f.Title)
	}
	for _, p := range r.Packages {
		all = append(all, p.Title, p.signatureTitle())
	}
	for _, i := range r.Images {
		all = append(all, i.Title)
	}
	return all
}

// validTitle reports whether a title can be named in a declaration and shown to a
// person on one line.
func validTitle(s string) bool {
	return s != "" && len(s) <= 255 && utf8.ValidString(s) && !strings.ContainsAny(s, "\"\\") &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// architectures are those there are programs for.
var architectures = []string{bundle.Architecture("amd64"), bundle.Architecture("arm64")}

func validArchitecture(s string) bool { return slices.Contains(architectures, s) }
