// Package claim reads who a signature claims to be by, from a sigstore bundle
// that nobody has verified: to find the key to try it with, or to try it on what
// it may cover.
//
// It promises the form: one signature of one envelope, and the id of one key. It
// does not promise that any of it is true; bundle/trust and attest decide that,
// and are stricter. It keeps nothing.
package claim

import (
	"encoding/hex"
	"encoding/json"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Claim is a signature and the key it says it is by.
type Claim struct {
	// Key is the id of the key, 64 hex digits: the SHA-256 of its SPKI DER.
	Key string
	// Signature is in the form of its algorithm (ECDSA: ASN.1 DER).
	Signature []byte
}

// Read reads a sigstore bundle
// (https://github.com/sigstore/protobuf-specs, dev.sigstore.bundle.v1.Bundle).
// The caller bounds b.
func Read(b []byte) (Claim, error) {
	var s struct {
		Material struct {
			PublicKey struct {
				Hint []byte `json:"hint"`
			} `json:"publicKey"`
		} `json:"verificationMaterial"`
		Envelope struct {
			Signatures []struct {
				Sig []byte `json:"sig"`
			} `json:"signatures"`
		} `json:"dsseEnvelope"`
		// Message is there in place of an envelope.
		Message json.RawMessage `json:"messageSignature"`
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return Claim{}, fault.Refusedf("it is no sigstore bundle: %w", err)
	}
	switch n := len(s.Envelope.Signatures); {
	case s.Message != nil:
		return Claim{}, fault.Refusedf("it is a signature of the file's bytes, as \"cosign sign-blob\" makes it, and no statement about the file").
			Hint("sign the file with \"mesh-release sign\"")
	case n != 1:
		return Claim{}, fault.Refusedf("it has %d signatures, not 1", n)
	case len(s.Material.PublicKey.Hint) != 32:
		return Claim{}, fault.Refusedf("it names no public key")
	}
	return Claim{Key: hex.EncodeToString(s.Material.PublicKey.Hint), Signature: s.Envelope.Signatures[0].Sig}, nil
}
