package packages

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// own is the package of the host itself.
const own = pkgbuild.HostPackage

// A cache is a Manager that keeps the files of packages that it fetched.
type cache interface {
	// Cached is the file of a package in that version, or "".
	Cached(name, version string) string
}

// Registered returns what the database says of the host's own package: its
// version, and the digest of the host's binary as it was packaged. Both are ""
// where the host is of no package, or there is no package manager.
func (k *Kind) Registered() (version string, binary digest.Digest, err error) {
	if k.choose() != "" {
		return "", "", nil
	}
	is, err := k.Manager.Look(own)
	if err != nil || !is.Installed {
		return "", "", err
	}
	for _, f := range is.Files {
		if path.Base(f.Path) == layout.HostName && k.isBinary(f.Path) {
			if len(f.Sum) == digest.SHA256.Size()*2 {
				binary = digest.NewDigestFromEncoded(digest.SHA256, f.Sum)
			}
			return is.Version, binary, nil
		}
	}
	return "", "", nil
}

// isBinary reports whether a packaged path is where a host lies.
func (k *Kind) isBinary(p string) bool {
	for _, prefix := range k.Layout.Prefixes() {
		if p == path.Join(prefix, "bin", layout.HostName) {
			return true
		}
	}
	return false
}

// PutBack installs a version of the host's own package over another, whose
// binary was put back already, so that the database says again what runs: from
// the content store, the manager's cache, or where the machine gets packages.
func (k *Kind) PutBack(ctx context.Context, p *declaration.Package) error {
	if lacking := k.choose(); lacking != "" {
		return errors.New(lacking)
	}
	err := k.alone(ctx, own, func() error {
		var first error
		if p.Source != "" {
			if first = k.install(ctx, p); first == nil || ctx.Err() != nil {
				return first
			}
		}
		file := ""
		if c, ok := k.Manager.(cache); ok {
			file = c.Cached(own, p.Version)
		}
		before, err := k.mend(ctx, own)
		if err == nil {
			err = k.handOver(own, before, func() error { return k.Manager.Install(ctx, own, p.Version, file) })
		}
		if err == nil {
			return nil
		}
		return errors.Join(first, err)
	})
	if err != nil {
		return fmt.Errorf("cannot install package %q in version %s again: %w", own, p.Version, err)
	}
	return nil
}
