package recipe

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// blob describes a file of the disk; Build hashes it again as it copies it.
func blob(ctx context.Context, title, path string) (bundle.Blob, error) {
	f, err := open(path)
	if err != nil {
		return bundle.Blob{}, err
	}
	defer f.Close()
	h := digest.SHA256.Digester()
	n, err := io.Copy(h.Hash(), &interruptible{ctx, f})
	if err != nil {
		return bundle.Blob{}, err
	}
	return bundle.Blob{
		Digest: h.Digest(), Size: n, Title: title, MediaType: bundle.MediaTypeFile,
		Open: func() (io.ReadCloser, error) { return open(path) },
	}, nil
}

// interruptible is a reader that ends with its context.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}

// pacman adds a package and its signature.
func (b *building) pacman(ctx context.Context, p Package) error {
	one, err := blob(ctx, p.Title, p.Path)
	if err == nil {
		err = checkPackage(p.Path, b.spec.Architecture)
	}
	if err != nil {
		return fmt.Errorf("cannot read package %q: %w", p.Title, err)
	}
	if err := checkSignature(p.Signature); err != nil {
		return fmt.Errorf("cannot read the signature of package %q: %w", p.Title, err)
	}
	signature, err := blob(ctx, p.signatureTitle(), p.Signature)
	if err != nil {
		return fmt.Errorf("cannot read the signature of package %q: %w", p.Title, err)
	}
	one.MediaType, signature.MediaType = bundle.MediaTypePackageArch, bundle.MediaTypePackageArchSignature
	b.names["source"]["package"][p.Title] = one.Digest
	b.names["signature"]["package"][p.Title] = signature.Digest
	b.spec.Payload = append(b.spec.Payload, one, signature)
	return nil
}

// checkSignature holds that a file can be what pacman takes for a signature. Whose
// it is, the machine will ask.
func checkSignature(path string) error {
	s, err := readBounded(path, trust.MaxPackageSignature)
	switch {
	case err != nil:
		return err
	case len(s) == 0 || s[0] < 0x80: // RFC 9580, 4.2: bit 7 is set in every packet
		return fault.Refusedf("%q is no binary OpenPGP signature", path).Hint("sign with \"gpg --detach-sign\", without --armor")
	}
	return nil
}

// checkPackage holds that a package is one for the architecture. One that is packed
// in a way we cannot look into is taken.
func checkPackage(path, architecture string) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	begin, _ := r.Peek(4)
	var plain io.Reader
	switch {
	case strings.HasPrefix(string(begin), "\x28\xb5\x2f\xfd"):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return err
		}
		defer z.Close()
		plain = z
	case strings.HasPrefix(string(begin), "\x1f\x8b"):
		if plain, err = gzip.NewReader(r); err != nil {
			return fault.Refusedf("%q is no package: %w", path, err)
		}
	case strings.HasPrefix(string(begin), "\xfd7zX"):
		return nil
	default:
		return fault.Refusedf("%q is no package of pacman", path)
	}
	for t, n := tar.NewReader(plain), 0; n < maxBefore; n++ {
		h, err := t.Next()
		if err != nil {
			return fault.Refusedf("%q is no package of pacman: it has no .PKGINFO (%w)", path, err)
		}
		if h.Name == ".PKGINFO" {
			return checkInfo(io.LimitReader(t, maxRecipe), path, architecture)
		}
	}
	return fault.Refusedf("%q is no package of pacman: it does not begin with metadata", path)
}

// maxBefore is how many members may come before .PKGINFO: makepkg writes metadata
// first.
const maxBefore = 16

func checkInfo(r io.Reader, path, architecture string) error {
	for s := bufio.NewScanner(r); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), " = ")
		if key != "arch" {
			continue
		}
		if value != "any" && value != architecture {
			return fault.Refusedf("%q is a package for %.80q, the bundle is for %s", path, value, architecture)
		}
		return nil
	}
	return fault.Refusedf("%q is no package of pacman: it says not what machines it is for", path)
}

// checkPackages holds that what a declaration installs with a signature has the one
// that was brought for it.
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
	}
	return nil
}
