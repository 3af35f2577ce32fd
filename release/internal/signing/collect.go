package signing

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
	"github.com/nox-mesh/nox-mesh/release/internal/signing/claim"
)

// maxHead bounds how far a tarball or bundle is read for signatures, in bytes:
// they come first.
const maxHead = 8 << 20

// A collection is the signatures of a release. None is believed for standing
// there: each is tried on what it is to cover.
type collection struct {
	// key is the id of the release key, as the signature of release.json has it.
	key      string
	raw      [][]byte
	packages [][]byte
}

func collect(dir string, files []string) (*collection, error) {
	c := &collection{}
	for _, name := range files {
		if err := c.file(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("cannot take signatures of %q: %w", name, err)
		}
	}
	return c, nil
}

func (c *collection) file(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return fault.Refusedf("it is not a regular file")
	}
	head := io.LimitReader(f, maxHead)
	switch {
	case strings.HasSuffix(path, trust.SignatureSuffix):
		b, err := io.ReadAll(head)
		if err != nil {
			return err
		}
		key := c.take(b)
		if filepath.Base(path) == check.ManifestName+trust.SignatureSuffix {
			c.key = key
		}
	case strings.HasSuffix(path, trust.PackageSignatureSuffix):
		b, err := io.ReadAll(io.LimitReader(f, trust.MaxPackageSignature))
		c.packages = append(c.packages, b)
		return err
	case strings.HasSuffix(path, ".tar.gz"):
		z, err := gzip.NewReader(head)
		if err != nil {
			return err
		}
		return c.members(io.LimitReader(z, maxHead))
	case strings.HasSuffix(path, ".bundle.tar"):
		return c.members(head)
	}
	return nil
}

// members takes the signatures among the small members at the beginning of a
// tar.
func (c *collection) members(r io.Reader) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // the end, or that of what is read of it
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || h.Size > trust.MaxSignature {
			continue
		}
		b, err := io.ReadAll(t)
		if err != nil {
			return nil
		}
		c.take(b)
	}
}

// take takes the signatures of b, if it is a sigstore bundle, and returns the id
// of its key.
func (c *collection) take(b []byte) string {
	got, err := claim.Read(b)
	if err != nil {
		return ""
	}
	c.raw = append(c.raw, got.Signature)
	return got.Key
}
