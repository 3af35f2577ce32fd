package recipe

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// pacman adds a package and its signature.
func (b *building) pacman(p Package) error {
	one, err := b.files.blob(p.Title, p.Path)
	var is identity
	if err == nil {
		is, err = checkPackage(p.Path, b.spec.Architecture)
	}
	if err != nil {
		return fmt.Errorf("cannot read package %q: %w", p.Title, err)
	}
	if is.name == "" {
		b.note("package %q was not looked into: it is compressed with xz", p.Title)
	}
	if err := b.checkSignature(p); err != nil {
		return fmt.Errorf("cannot use the signature of package %q: %w", p.Title, err)
	}
	signature, err := b.files.blob(p.signatureTitle(), p.Signature)
	if err != nil {
		return fmt.Errorf("cannot read the signature of package %q: %w", p.Title, err)
	}
	one.MediaType, signature.MediaType = bundle.MediaTypePackageArch, bundle.MediaTypePackageArchSignature
	b.identities[one.Digest] = is
	b.names["source"]["package"][p.Title] = one.Digest
	b.names["signature"]["package"][p.Title] = signature.Digest
	b.spec.Payload = append(b.spec.Payload, one, signature)
	return nil
}

// An identity is what a package says it is.
type identity struct{ name, version string }

// checkPackage holds that a package is one for the architecture. One that is packed
// in a way we cannot look into is taken, and has no identity.
func checkPackage(path, architecture string) (is identity, err error) {
	f, _, err := input.Regular(path)
	if err != nil {
		return is, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	begin, _ := r.Peek(4)
	var plain io.Reader
	switch {
	case strings.HasPrefix(string(begin), "\x28\xb5\x2f\xfd"):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return is, err
		}
		defer z.Close()
		plain = z
	case strings.HasPrefix(string(begin), "\x1f\x8b"):
		if plain, err = gzip.NewReader(r); err != nil {
			return is, fault.Refusedf("%q is no package: %w", path, err)
		}
	case strings.HasPrefix(string(begin), "\xfd7zX"):
		return is, nil
	default:
		return is, fault.Refusedf("%q is no package of pacman", path)
	}
	for t, n := tar.NewReader(plain), 0; n < maxBefore; n++ {
		h, err := t.Next()
		if err != nil {
			return is, fault.Refusedf("%q is no package of pacman: it has no .PKGINFO (%w)", path, err)
		}
		if h.Name == ".PKGINFO" {
			return checkInfo(io.LimitReader(t, maxRecipe), path, architecture)
		}
	}
	return is, fault.Refusedf("%q is no package of pacman: it does not begin with metadata", path)
}

// maxBefore is how many members may come before .PKGINFO: makepkg writes metadata
// first.
const maxBefore = 16

// checkInfo reads .PKGINFO.
func checkInfo(r io.Reader, path, architecture string) (is identity, err error) {
	machines := ""
	for s := bufio.NewScanner(r); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), " = ")
		switch key {
		case "pkgname":
			is.name = value
		case "pkgver":
			is.version = value
		case "arch":
			machines = value
		}
	}
	switch {
	case machines == "":
		return is, fault.Refusedf("%q is no package of pacman: it says not what machines it is for", path)
	case is.name == "" || is.version == "":
		return is, fault.Refusedf("%q is no package of pacman: it says not what it is, and of which version", path)
	case machines != "any" && machines != architecture:
		return is, fault.Refusedf("%q is a package for %.80q, the bundle is for %s", path, machines, architecture)
	}
	return is, nil
}

// checkPackages holds that what a declaration installs is what the package says it
// is, and has the signature that was brought for it.
func (b *building) checkPackages() error {
	signatures := map[digest.Digest]digest.Digest{}
	for title, d := range b.names["source"]["package"] {
		signatures[d] = b.names["signature"]["package"][title]
	}
	for _, res := range b.declared {
		if res.Package == nil {
			continue
		}
		want, ok := signatures[res.Package.Source]
		switch {
		case ok && res.Package.Signature == "":
			return fault.Refusedf("cannot close the bundle: %s has no signature", res.in).
				Hint("name it by the package's title, \"signature\": \"package:TITLE\": pacman wants both")
		case ok && res.Package.Signature != want:
			return fault.Refusedf("cannot close the bundle: the signature of %s is that of another package", res.in)
		}
		is := b.identities[res.Package.Source]
		switch {
		case is.name == "":
		case is.name != res.Package.Name:
			return fault.Refusedf("cannot close the bundle: %s is to install package %q, its source is package %q", res.in, res.Package.Name, is.name)
		case res.Package.Version != "" && is.version != res.Package.Version:
			return fault.Refusedf("cannot close the bundle: %s is to install version %q, its source is version %q", res.in, res.Package.Version, is.version)
		}
	}
	return nil
}
