package signing

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/release/internal/signing/claim"
)

// mayReplace refuses what lies at path, the place of a signature, unless it is
// nothing, empty, or a signature that says it is by a key of our chain, of whatever:
// the file may have changed since. What somebody else signed is theirs.
func (s *Signer) mayReplace(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	stranger := fault.Refusedf("%q is in the way: it is no signature by a key of these", path).
		Hint("look at what it is, and move it elsewhere")
	if !fi.Mode().IsRegular() || fi.Size() > trust.MaxSignature {
		return stranger
	}
	if fi.Size() == 0 {
		return nil
	}
	b, err := input.ReadFile(path, trust.MaxSignature)
	if err != nil {
		return err
	}
	if got, err := claim.Read(b); err != nil || !s.names(got.Key) {
		return stranger
	}
	return nil
}

// names reports whether any root of the chain names the key for releases, one that
// was revoked since too.
func (s *Signer) names(id string) bool {
	return slices.ContainsFunc(s.Roots, func(b []byte) bool {
		r, err := trust.ParseRoot(b)
		return err == nil && slices.ContainsFunc(r.Keys, func(k trust.Key) bool {
			return k.ID == id && slices.Contains(k.Scope, trust.ScopeRelease)
		})
	})
}
