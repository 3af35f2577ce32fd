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
//
// Paths are relative to the recipe. Where a declaration must say the digest of
// a file that is only known once it was built, it names the file by its title,
// "source": "file:mesh-controller", and the digest is put in its place. In the
// same way "generation": "counter" becomes the counter of the release, so that
// the declaration of each release follows that of the last. Nothing else of the
// document is changed, to the byte.
//
// What comes out is closed: every digest the declarations name is in it and
// every file of it is named by a declaration. A declaration with secret content
// is refused: a bundle is for everybody to read.
package recipe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// maxRecipe bounds a recipe, in bytes.
const maxRecipe = 1 << 20

// A Recipe is bundle.toml.
type Recipe struct {
	Name         string   `toml:"name"`
	Version      string   `toml:"version"`
	Architecture string   `toml:"architecture"`
	MinimumHost  string   `toml:"minimum_host"`
	Declarations []string `toml:"declarations"`
	Files        []File   `toml:"file"`

	dir string
}

// A File is a payload of the bundle.
type File struct {
	Title string `toml:"title"`
	Path  string `toml:"path"`
}

// Read reads the recipe at path: a key that is not known is refused.
func Read(path string) (*Recipe, error) {
	b, err := readBounded(path, maxRecipe)
	if err != nil {
		return nil, fmt.Errorf("cannot read recipe: %w", err)
	}
	r := &Recipe{dir: filepath.Dir(path)}
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
	return r, r.check(path)
}

func (r *Recipe) check(path string) error {
	if r.Name == "" || len(r.Declarations) == 0 {
		return fault.Refusedf("cannot use recipe %q: it needs a name and declarations", path)
	}
	titles := map[string]bool{}
	for _, f := range r.Files {
		if f.Title == "" || strings.ContainsAny(f.Title, "\"\\\n\r") {
			return fault.Refusedf("cannot use recipe %q: the title %q is not plain", path, f.Title)
		}
		if titles[f.Title] {
			return fault.Refusedf("cannot use recipe %q: the title %q is there twice", path, f.Title)
		}
		titles[f.Title] = true
	}
	return nil
}

// Fill gives the recipe what the one who builds knows: version and architecture
// when they are not empty, and the paths of files by title.
func (r *Recipe) Fill(version, architecture string, files map[string]string) error {
	if version != "" {
		r.Version = version
	}
	if architecture != "" {
		r.Architecture = architecture
	}
	if r.Version == "" || r.Architecture == "" {
		return fault.Usagef("cannot use recipe: it says no version or no architecture").Hint("give --version and --arch")
	}
	left := len(files)
	for i, f := range r.Files {
		if path, ok := files[f.Title]; ok {
			r.Files[i].Path = path
			left--
		} else if f.Path != "" && !filepath.IsAbs(f.Path) {
			r.Files[i].Path = filepath.Join(r.dir, f.Path)
		}
		if r.Files[i].Path == "" {
			return fault.Usagef("cannot use recipe: it says no path for file %q", f.Title).Hint("give --file %s=PATH", f.Title)
		}
	}
	if left > 0 {
		return fault.Usagef("cannot use recipe: a file is given that it does not name")
	}
	return nil
}

// open opens a regular file. A pipe in its place does not hold us up.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func readBounded(path string, max int64) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		err = fmt.Errorf("%q has more than %d bytes", path, max)
	}
	return b, err
}
