package keys

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
)

// The files of a pacman keyring.
const (
	KeyringGPG     = "nox-mesh.gpg"
	KeyringTrusted = "nox-mesh-trusted"
	KeyringRevoked = "nox-mesh-revoked"
)

// A Keyring is what the keyring package holds for pacman-key(8), each the
// content of the file /usr/share/pacman/keyrings/NAME.
type Keyring struct {
	// GPG is nox-mesh.gpg: the public keys, binary.
	GPG []byte
	// Trusted is nox-mesh-trusted: "FINGERPRINT:4:" a line.
	Trusted []byte
	// Revoked is nox-mesh-revoked: a fingerprint a line; may be empty.
	Revoked []byte
}

// PacmanKeyring makes the keyring from a chain of release roots, oldest first
// (see Roots): what the newest names for packages is trusted, the next key
// included before it signs; what it revoked is in it too, and is disabled.
// Equal roots give equal bytes.
func PacmanKeyring(roots [][]byte) (Keyring, error) {
	all := map[string]trust.Key{}
	var newest *trust.Root
	for _, b := range roots {
		r, err := trust.ParseRoot(b)
		if err != nil {
			return Keyring{}, fmt.Errorf("cannot make keyring: %w", err)
		}
		for _, k := range r.Keys {
			if k.OpenPGP != "" {
				all[k.ID] = k
			}
		}
		newest = r
	}
	var out Keyring
	var trusted, revoked bytes.Buffer
	for _, id := range slices.Sorted(maps.Keys(all)) {
		listed := slices.ContainsFunc(newest.Keys, func(k trust.Key) bool { return k.ID == id })
		if !listed && !slices.Contains(newest.Revoked, id) {
			continue
		}
		b, err := all[id].Keyring()
		if err != nil {
			return Keyring{}, fmt.Errorf("cannot make keyring: %w", err)
		}
		out.GPG = append(out.GPG, b...)
		if listed {
			fmt.Fprintf(&trusted, "%s:4:\n", strings.ToUpper(id))
		} else {
			fmt.Fprintf(&revoked, "%s\n", strings.ToUpper(id))
		}
	}
	out.Trusted, out.Revoked = trusted.Bytes(), revoked.Bytes()
	return out, nil
}
