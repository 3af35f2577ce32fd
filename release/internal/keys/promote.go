package keys

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// maxKeyring bounds a keyring package, in bytes, packed and unpacked: it holds a
// licence and a few keys.
const maxKeyring = 1 << 20

// keyringMember is where the fingerprints that are trusted lie in the package.
const keyringMember = "usr/share/pacman/keyrings/" + KeyringTrusted

// A Promotion says why the next package key may sign: a release is out from
// which every machine knows it.
type Promotion struct {
	// Shipped is the keyring package of such a release, with its .sig beside it.
	Shipped string
	// Unshipped says that no machine has an older keyring; nothing is looked at.
	Unshipped bool
	// Now is the machine's clock, for the signature of Shipped.
	Now time.Time
}

// Promote has the next package key sign from now on. It needs no secret. A
// machine that has not the keyring with that key refuses what it signs, and can
// then not even install the keyring that would mend it: so a release has to be
// shown that carries the key and that an older keyring takes.
func Promote(dir string, why Promotion) (s State, err error) {
	if why.Shipped != "" && why.Unshipped {
		return s, fault.Usagef("cannot promote a package key: it was shipped, or it was not").Hint("give --shipped FILE or --unshipped")
	}
	err = locked(dir, func() error {
		h, err := readHistory(dir)
		if err != nil {
			return err
		}
		_, next, err := h.packages()
		if err != nil {
			return err
		}
		if next == nil {
			return fault.Refusedf("cannot promote a package key: none was announced").
				Hint("run \"mesh-release keys rotate %s --package\" and ship a release first", fault.Word(dir))
		}
		if !why.Unshipped {
			if err := h.carries(why, next.key.ID); err != nil {
				return err
			}
		}
		h.pointer = next.key.ID
		if err := durable.WriteFile(filepath.Join(dir, PackageCurrent), []byte(h.pointer+"\n"), 0o644); err != nil {
			return fmt.Errorf("cannot record which package key signs: %w", err)
		}
		s, err = h.state()
		return err
	})
	return s, err
}

// carries refuses a keyring package that does not bring key to a machine that
// has the keyring before it.
func (h *history) carries(why Promotion, key string) error {
	path := why.Shipped
	if path == "" {
		return fault.Refusedf("cannot promote package key %s: no release is shown that carries it, and who has not got it refuses what it signs", key).
			Hint("give --shipped nox-mesh-keyring-VERSION-1-any.pkg.tar.zst of the release that is out, or --unshipped if no machine has an older keyring")
	}
	content, err := readKeyring(path, maxKeyring)
	if err != nil {
		return fmt.Errorf("cannot read the keyring package: %w", err)
	}
	sig, err := readKeyring(path+trust.PackageSignatureSuffix, trust.MaxPackageSignature)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Refusedf("cannot promote package key %s: %q is not signed, there is no %q", key, path, path+trust.PackageSignatureSuffix)
	}
	if err != nil {
		return fmt.Errorf("cannot read the signature of the keyring package: %w", err)
	}
	by, err := h.policy.VerifyPackage(bytes.NewReader(content), sig, trust.Times{Clock: why.Now})
	if err != nil {
		return fmt.Errorf("%q: %w", path, err)
	}
	if by.Key == key {
		return fault.Refusedf("cannot promote package key %s: it signed %q itself, which an older keyring refuses", key, path).
			Hint("give the keyring package of the release before")
	}
	trusted, err := trustedIn(content)
	if err != nil {
		return fault.Refusedf("cannot read keyring package %q: %w", path, err)
	}
	if !slices.Contains(trusted, strings.ToUpper(key)+":4:") {
		return fault.Refusedf("cannot promote package key %s: %q does not carry it", key, path).
			Hint("ship a release built after it was announced, and give the keyring package of that")
	}
	return nil
}

// trustedIn returns the lines of the file of a keyring package that names the
// keys that are trusted.
func trustedIn(content []byte) ([]string, error) {
	z, err := zstd.NewReader(bytes.NewReader(content), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	for t := tar.NewReader(io.LimitReader(z, maxKeyring)); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil, fmt.Errorf("it is no keyring package: it has no %q", keyringMember)
		}
		if err != nil {
			return nil, err
		}
		if h.Name == keyringMember && h.Typeflag == tar.TypeReg {
			b, err := io.ReadAll(t)
			return strings.Split(string(b), "\n"), err
		}
	}
}

// readKeyring reads a regular file of at most limit bytes.
func readKeyring(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > limit {
		return nil, fault.Refusedf("%q is no regular file of at most %d bytes", path, limit)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
