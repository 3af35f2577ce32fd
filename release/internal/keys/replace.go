package keys

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A public file is one that Export writes.
type public struct {
	name    string
	content []byte
	// ours reports whether a file of this name that has other bytes is what an
	// earlier export of the same keys wrote.
	ours func([]byte) bool
}

// nobodys is of what never changes: another one is somebody else's.
func nobodys([]byte) bool { return false }

// mayExport refuses a directory in which an export would take the place of anything
// but an earlier export of the same keys: a directory of keys, this one too, whose
// public files are what its keys are known by, a newer chain, another publisher's
// files, a symlink.
func (h *history) mayExport(out string, files []public) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot export keys: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, ".key") || strings.HasSuffix(name, PackageSecret) || name == PackageCurrent {
			return fault.Refusedf("cannot export keys: %q is a directory of keys: it has %q", out, name).
				Hint("give a directory of its own: --out DIR")
		}
		number, ok := strings.CutSuffix(name, ".root.json")
		if n, err := strconv.Atoi(number); ok && err == nil && n > len(h.files) {
			return fault.Refusedf("cannot export keys: %q has release root %d, and %q goes no further than %d", out, n, h.dir, len(h.files)).
				Hint("export the newest keys, or give another directory: --out DIR")
		}
	}
	if there, err := os.Stat(out); err == nil {
		if own, err := os.Stat(h.dir); err == nil && os.SameFile(there, own) {
			return fault.Refusedf("cannot export keys: %q is the directory they come from", out).
				Hint("give a directory of its own: --out DIR")
		}
	}
	for _, f := range files {
		if err := f.mayReplace(filepath.Join(out, f.name)); err != nil {
			return err
		}
	}
	return nil
}

// mayReplace refuses what lies at path unless it is nothing, empty, or ours.
func (f public) mayReplace(path string) error {
	stranger := fault.Refusedf("cannot export keys: %q is in the way: no export of these keys wrote it", path).
		Hint("look at what it is and move it elsewhere, or give another directory: --out DIR")
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot export keys: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return stranger
	}
	if fi.Size() == 0 {
		return nil
	}
	b, err := read(path)
	if err != nil {
		return fmt.Errorf("cannot export keys: %w", err)
	}
	if !bytes.Equal(b, f.content) && !f.ours(b) {
		return stranger
	}
	return nil
}

// names reports whether any root of the chain names the key.
func (h *history) names(id string) bool {
	return slices.ContainsFunc(h.roots, func(r *trust.Root) bool {
		return slices.ContainsFunc(r.Keys, func(k trust.Key) bool { return k.ID == id })
	})
}

func (h *history) hasReleaseKey(b []byte) bool {
	key, err := cryptoutils.UnmarshalPEMToPublicKey(b)
	if err != nil {
		return false
	}
	id, err := trust.KeyID(key)
	return err == nil && h.names(id)
}

func (h *history) hasPackageKey(b []byte) bool {
	block, err := armor.Decode(bytes.NewReader(b))
	if err != nil || block.Type != openpgp.PublicKeyType {
		return false
	}
	binary, err := io.ReadAll(io.LimitReader(block.Body, maxFile))
	return err == nil && h.hasKeyring(binary)
}

// hasKeyring: all keys in it are named.
func (h *history) hasKeyring(b []byte) bool {
	all, err := openpgp.ReadKeyRing(bytes.NewReader(b))
	return err == nil && len(all) > 0 && !slices.ContainsFunc(all, func(e *openpgp.Entity) bool {
		return e.PrivateKey != nil || !h.names(fmt.Sprintf("%x", e.PrimaryKey.Fingerprint))
	})
}

// hasFingerprints: each line of it begins with that of a key that is named.
func (h *history) hasFingerprints(b []byte) bool {
	for line := range strings.Lines(string(b)) {
		id, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if !h.names(strings.ToLower(id)) {
			return false
		}
	}
	return true
}
