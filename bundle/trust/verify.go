package trust

import (
	"errors"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Signer is a trusted key that made a valid signature.
type Signer struct {
	// Key is its id as a root names it: the hex SHA-256 of the key's SPKI DER,
	// or the fingerprint of an OpenPGP key.
	Key string `json:"key"`
	// Root is the version of the release root that names it; 0 when it is
	// trusted by a key file.
	Root int `json:"root,omitempty"`
}

// Verify returns who of the trusted signed subject, each key once, in the order
// of the signatures (sigstore bundles). One that counts is enough, whatever
// lies beside it. Else the error is a fault of kind Refused with the nearest
// miss in its chain: ErrBadSignature, ErrRevokedKey, ErrUnknownKey or
// ErrNoSignature.
func (p *Policy) Verify(subject digest.Digest, signatures [][]byte, scope Scope) ([]Signer, error) {
	if !canonical.Digest(subject) {
		return nil, fault.Refusedf("cannot verify %q: it is no SHA-256 digest", subject)
	}
	if p.Empty() {
		return nil, fault.Refusedf("cannot verify %s: %w, no key is trusted", subject, ErrUnknownKey).
			Hint("name a key or a directory of trust")
	}
	var signers []Signer
	var misses []error
	for _, b := range signatures {
		signer, err := p.verifyOne(subject, b, scope)
		if err != nil {
			misses = append(misses, err)
			continue
		}
		if !slices.Contains(signers, signer) {
			signers = append(signers, signer)
		}
	}
	if len(signers) > 0 {
		return signers, nil
	}
	for _, kind := range []error{ErrBadSignature, ErrRevokedKey, ErrUnknownKey} {
		for _, miss := range misses {
			if errors.Is(miss, kind) {
				return nil, miss
			}
		}
	}
	return nil, fault.Refusedf("cannot verify %s: %w", subject, ErrNoSignature)
}

func (p *Policy) verifyOne(subject digest.Digest, b []byte, scope Scope) (Signer, error) {
	s, err := parseSignature(b)
	if err != nil {
		return Signer{}, fault.Refusedf("cannot verify %s: %w: %v", subject, ErrBadSignature, err)
	}
	pub, version, err := p.key(s.keyID, scope)
	if err != nil {
		return Signer{}, fault.Refusedf("cannot verify %s: %w %s", subject, err, s.keyID)
	}
	if err := s.covers(pub, subject); err != nil {
		return Signer{}, fault.Refusedf("cannot verify %s: %w of key %s: %v", subject, ErrBadSignature, s.keyID, err)
	}
	return Signer{Key: s.keyID, Root: version}, nil
}
