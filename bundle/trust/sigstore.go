package trust

import (
	"crypto"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const (
	// MediaType is the media type of a signature: a sigstore bundle.
	MediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// MaxSignature bounds a signature, in bytes.
	MaxSignature = 64 << 10

	statementPayload = "application/vnd.in-toto+json"
	statementType    = "https://in-toto.io/Statement/v1"
	// PredicateType is the predicate of every signature, the one of `cosign sign`.
	PredicateType = "https://sigstore.dev/cosign/sign/v1"
)

// A sigstoreBundle is what we read and write of
// https://github.com/sigstore/protobuf-specs (dev.sigstore.bundle.v1.Bundle):
// one DSSE envelope, signed by a key that the hint names. cosign's hint is the
// SHA-256 of the key's SPKI DER in base64, which is our key id.
type sigstoreBundle struct {
	Envelope  envelope `json:"dsseEnvelope"`
	MediaType string   `json:"mediaType"`
	// Message is there in place of an envelope when it signs bytes.
	Message  json.RawMessage `json:"messageSignature,omitempty"`
	Material material        `json:"verificationMaterial"`
}

type material struct {
	PublicKey keyHint `json:"publicKey"`
}

type keyHint struct {
	Hint string `json:"hint"`
}

// A statement is an in-toto statement v1 as cosign makes it for `sign`.
type statement struct {
	Type          string      `json:"_type"`
	Predicate     struct{}    `json:"predicate"`
	PredicateType string      `json:"predicateType"`
	Subject       []inSubject `json:"subject"`
}

type inSubject struct {
	Digest map[string]string `json:"digest"`
}

// Sign signs subject and returns the signature, a sigstore bundle: the same
// bytes each time when the key is an *ecdsa.PrivateKey.
func Sign(key crypto.Signer, subject digest.Digest) ([]byte, error) {
	if !canonical.Digest(subject) {
		return nil, fmt.Errorf("cannot sign %q: it is no SHA-256 digest", subject)
	}
	payload, err := canonical.Marshal(statement{
		Type:          statementType,
		PredicateType: PredicateType,
		Subject:       []inSubject{{Digest: map[string]string{"sha256": subject.Encoded()}}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot sign %s: %w", subject, err)
	}
	id, err := KeyID(key.Public())
	if err != nil {
		return nil, fmt.Errorf("cannot sign %s: %w", subject, err)
	}
	e, err := signEnvelope(statementPayload, payload, false, key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign %s: %w", subject, err)
	}
	raw, err := hex.DecodeString(id)
	if err != nil {
		return nil, err
	}
	return canonical.Marshal(sigstoreBundle{
		Envelope:  e,
		MediaType: MediaType,
		Material:  material{PublicKey: keyHint{Hint: base64.StdEncoding.EncodeToString(raw)}},
	})
}

// signature is a sigstore bundle that was read, and not yet believed.
type signature struct {
	keyID   string
	sig     envelopeSignature
	sum     []byte
	payload []byte
}

func parseSignature(b []byte) (*signature, error) {
	if len(b) > MaxSignature {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(b), MaxSignature)
	}
	var s sigstoreBundle
	if err := canonical.Foreign(b, &s); err != nil {
		return nil, err
	}
	if s.MediaType != MediaType {
		return nil, fmt.Errorf("its media type is %q", s.MediaType)
	}
	if s.Message != nil {
		return nil, fault.Refusedf("it is a signature of the file's bytes, as \"cosign sign-blob\" makes it, and no statement about the file").
			Hint("sign the file with \"mesh-release sign\"")
	}
	if s.Envelope.PayloadType != statementPayload {
		return nil, fmt.Errorf("its payload type is %q, not %q", s.Envelope.PayloadType, statementPayload)
	}
	if n := len(s.Envelope.Signatures); n != 1 {
		return nil, fmt.Errorf("its envelope has %d signatures, not 1", n)
	}
	if s.Envelope.Signatures[0].KeyID != "" {
		return nil, errors.New("its envelope has a key id, which a sigstore bundle leaves empty")
	}
	hint, err := strictBase64.DecodeString(s.Material.PublicKey.Hint)
	if err != nil || len(hint) != 32 {
		return nil, errors.New("it names no public key")
	}
	payload, err := strictBase64.DecodeString(s.Envelope.Payload)
	if err != nil {
		return nil, errors.New("its payload is not base64")
	}
	return &signature{
		keyID:   hex.EncodeToString(hint),
		sig:     s.Envelope.Signatures[0],
		sum:     preAuth(s.Envelope.PayloadType, payload),
		payload: payload,
	}, nil
}

// covers checks the signature itself, and then that what it signs is a
// statement of the right type about subject and nothing else.
func (s *signature) covers(pub *ecdsa.PublicKey, subject digest.Digest) error {
	if !s.sig.verifies(pub, s.sum) {
		return errors.New("it does not verify")
	}
	var st statement
	if err := canonical.Foreign(s.payload, &st); err != nil {
		return err
	}
	switch {
	case st.Type != statementType:
		return fmt.Errorf("its statement is of type %q", st.Type)
	case st.PredicateType != PredicateType:
		return fmt.Errorf("its predicate type is %q, not %q", st.PredicateType, PredicateType)
	case len(st.Subject) != 1:
		return fmt.Errorf("it is about %d subjects, not 1", len(st.Subject))
	case st.Subject[0].Digest["sha256"] != subject.Encoded():
		return errors.New("it is about another digest")
	}
	return nil
}
