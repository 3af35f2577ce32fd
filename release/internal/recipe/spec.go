package recipe

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/release/internal/image"
)

// Making is what goes into a Spec besides the recipe.
type Making struct {
	// Counter is that of the bundle.
	Counter uint64
	// Policy, if set, is what the signatures of packages are verified under, at the
	// time Now.
	Policy *trust.Policy
	Now    time.Time
	// Progress, if set, is told as files and packages are read, from the same
	// goroutine.
	Progress func(bundle.Progress)
	// Note, if set, is told what nothing is refused for and a person should know.
	Note func(text string)
}

// Spec returns what bundle.Build needs, but for the roots, the signers and the
// creation time, which are the publisher's. Fill was called before. Layers are
// not read before the bundle is built, nor after ctx has ended.
func (r *Recipe) Spec(ctx context.Context, m Making) (bundle.Spec, error) {
	b := &building{
		Making: m,
		files:  files{ctx: ctx, told: m.Progress},
		spec: bundle.Spec{
			Name: r.Name, Version: r.Version, Architecture: r.Architecture,
			MinimumHost: r.MinimumHost, Counter: m.Counter, Inputs: r.inputs(),
		},
		names:      newNames(),
		identities: map[digest.Digest]identity{},
	}
	for _, f := range r.Files {
		b.files.expect(f.Path)
	}
	for _, p := range r.Packages {
		b.files.expect(p.Path, p.Signature)
		if m.Policy != nil { // once more, for the signature
			b.files.expect(p.Path)
		}
	}
	for _, f := range r.Files {
		if err := b.file(f); err != nil {
			return b.spec, err
		}
	}
	for _, p := range r.Packages {
		if err := b.pacman(p); err != nil {
			return b.spec, err
		}
	}
	for _, i := range r.Images {
		if err := b.image(ctx, i); err != nil {
			return b.spec, err
		}
	}
	for _, name := range r.Declarations {
		if err := b.declaration(r, name); err != nil {
			return b.spec, err
		}
	}
	return b.spec, b.closed()
}

// A building is a Spec in the making, and what it holds by name.
type building struct {
	Making
	files files
	spec  bundle.Spec
	names names
	// identities are what packages say they are.
	identities map[digest.Digest]identity
	// declared are the resources of all declarations.
	declared []resource
}

// A resource is one of a declaration.
type resource struct {
	declaration.Resource
	in string
}

func (b *building) file(f File) error {
	read := b.files.blob
	if f.Compress {
		read = b.files.compressed
	}
	one, err := read(f.Title, f.Path)
	if err != nil {
		return fmt.Errorf("cannot read file %q: %w", f.Title, err)
	}
	b.names["source"]["file"][f.Title] = digestOf(one)
	b.spec.Payload = append(b.spec.Payload, one)
	return nil
}

func (b *building) image(ctx context.Context, i Image) error {
	found, err := image.Read(ctx, i.from, b.spec.Architecture)
	if err != nil {
		return fmt.Errorf("cannot use image %q: %w", i.Title, err)
	}
	for _, other := range b.spec.Images {
		if digest.FromBytes(other.Manifest) == found.Digest {
			return fault.Refusedf("cannot use image %q: it is the image %q", i.Title, other.Title).
				Hint("leave one out, and name the other in its place")
		}
	}
	b.names["image"]["image"][i.Title] = found.Digest
	b.spec.Images = append(b.spec.Images, bundle.Image{
		Title: i.Title, MediaType: found.MediaType, Manifest: found.Manifest,
		Open: func(d v1.Descriptor) (io.ReadCloser, error) {
			r, err := found.Open(ctx, d)
			if err != nil {
				return nil, fmt.Errorf("image %q: %w", i.Title, err)
			}
			return r, nil
		},
	})
	return nil
}

func (b *building) declaration(r *Recipe, name string) error {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, name)
	}
	text, err := input.ReadFile(path, declaration.MaxSize)
	if err != nil {
		return fmt.Errorf("cannot read declaration: %w", err)
	}
	if text, err = r.unfold(text); err != nil {
		return fault.Refusedf("cannot use declaration %q: %w", name, err)
	}
	if text, err = b.names.fill(text, b.spec.Counter); err != nil {
		return fault.Refusedf("cannot use declaration %q: %w", name, err)
	}
	d, err := declaration.Parse(text)
	if err != nil {
		return fmt.Errorf("cannot use declaration %q: %w", name, err)
	}
	for i, res := range d.Resources {
		if res.File != nil && res.File.Secret {
			return fault.Refusedf("cannot use declaration %q: resources[%d] (%q) has secret content", name, i, res.ID).
				Hint("a bundle is for everybody to read; give the secret to the machine another way")
		}
		b.declared = append(b.declared, resource{res, fmt.Sprintf("resources[%d] (%q) of declaration %q", i, res.ID, name)})
	}
	b.spec.Declarations = append(b.spec.Declarations, bundle.Declaration{Title: filepath.Base(name), Bytes: text, Needs: d.Sources()})
	return nil
}

// closed holds that declarations and contents name each other, and that each
// resource has what it can use.
func (b *building) closed() error {
	blobs, images, needed := map[digest.Digest]bool{}, map[digest.Digest]bool{}, map[digest.Digest]bool{}
	for _, p := range b.spec.Payload {
		blobs[digestOf(p)] = true
	}
	for _, i := range b.spec.Images {
		images[digest.FromBytes(i.Manifest)] = true
	}
	for _, res := range b.declared {
		for _, n := range res.Sources() {
			needed[n] = true
			switch {
			case res.Container != nil && !images[n]:
				return fault.Refusedf("cannot close the bundle: %s runs %s, which is no image of the recipe", res.in, n).
					Hint("name an image by its title, \"image:TITLE\"; the digest of an index is that of no image")
			case res.Container == nil && !blobs[n]:
				return fault.Refusedf("cannot close the bundle: %s needs %s, which is no file of the recipe and no package", res.in, n)
			}
		}
	}
	for _, p := range b.spec.Payload {
		if needed[digestOf(p)] {
			continue
		}
		if p.MediaType == bundle.MediaTypePackageArchSignature {
			title := strings.TrimSuffix(p.Title, trust.PackageSignatureSuffix)
			return fault.Refusedf("cannot close the bundle: no declaration needs the signature of package %q", title).
				Hint("write \"signature\": \"package:%s\" beside its source: pacman wants both", title)
		}
		return fault.Refusedf("cannot close the bundle: no declaration needs the %s %q (%s)", kinds[p.MediaType], p.Title, digestOf(p))
	}
	for _, i := range b.spec.Images {
		if d := digest.FromBytes(i.Manifest); !needed[d] {
			return fault.Refusedf("cannot close the bundle: no declaration needs the image %q (%s)", i.Title, d)
		}
	}
	return b.checkPackages()
}

var kinds = map[string]string{bundle.MediaTypeFile: "file", bundle.MediaTypeFileZstd: "file", bundle.MediaTypePackageArch: "package"}
