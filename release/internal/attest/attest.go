// Package attest says what a release is made of and how it was made.
//
// An SBOM (CycloneDX 1.6) says of one program which modules are compiled in,
// with versions and sums: what the toolchain wrote into the binary itself, not
// what a file of the source says. A provenance (SLSA v1) says of all artefacts
// of a release from which commit, with which toolchain and flags they came. Each
// is an in-toto statement about digests, in a DSSE envelope signed by the
// release key, in a sigstore bundle, which
//
//	cosign verify-blob-attestation --key release.pub --bundle FILE --type TYPE ARTEFACT
//
// verifies as well. TYPE is cyclonedx or slsaprovenance1.
//
// The same release is attested with the same bytes: there is no serial number,
// no moment but the one that the release's counter says, and no name of a
// machine. So the builder it names is the program and whoever holds the key; it
// is a statement of the publisher's, no proof by a third party. The proof is to
// build again.
package attest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// The predicate types.
const (
	SBOMType       = "https://cyclonedx.org/bom"
	ProvenanceType = "https://slsa.dev/provenance/v1"
)

const (
	// MaxSize bounds an attestation and an SBOM, in bytes. The SBOM of a program of
	// 47 modules has 30 KiB.
	MaxSize       = 1 << 20
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
	// maxSubjects is what sigstore's own verifier takes.
	maxSubjects = 1024
)

// A Subject is what a statement is about.
type Subject struct {
	Name string `json:"name"`
	// SHA256 is in hex.
	SHA256 string `json:"-"`
}

// A Statement is an in-toto statement, v1.
type Statement struct {
	PredicateType string
	Subjects      []Subject
	// Predicate is JSON.
	Predicate json.RawMessage
}

// The documents, in the order in which they are written.
type (
	statement struct {
		Type          string          `json:"_type"`
		Subject       []subject       `json:"subject"`
		PredicateType string          `json:"predicateType"`
		Predicate     json.RawMessage `json:"predicate"`
	}
	subject struct {
		Name   string            `json:"name"`
		Digest map[string]string `json:"digest"`
	}
	// sigstoreBundle is dev.sigstore.bundle.v1.Bundle of
	// https://github.com/sigstore/protobuf-specs with a DSSE envelope and the
	// hint of a public key: the SHA-256 of its SPKI DER.
	sigstoreBundle struct {
		MediaType string   `json:"mediaType"`
		Material  material `json:"verificationMaterial"`
		Envelope  envelope `json:"dsseEnvelope"`
	}
	material struct {
		PublicKey struct {
			Hint string `json:"hint"`
		} `json:"publicKey"`
	}
	envelope struct {
		Payload     string      `json:"payload"`
		PayloadType string      `json:"payloadType"`
		Signatures  []signature `json:"signatures"`
	}
	signature struct {
		Sig string `json:"sig"`
	}
)

// Sign states and signs. An *ecdsa.PrivateKey signs the same statement with the
// same bytes (RFC 6979).
func Sign(key crypto.Signer, s Statement) ([]byte, error) {
	if len(s.Subjects) == 0 || len(s.Subjects) > maxSubjects {
		return nil, fmt.Errorf("cannot attest: %d subjects, not 1 to %d", len(s.Subjects), maxSubjects)
	}
	st := statement{Type: statementType, PredicateType: s.PredicateType, Predicate: s.Predicate}
	for _, of := range s.Subjects {
		st.Subject = append(st.Subject, subject{of.Name, map[string]string{"sha256": of.SHA256}})
	}
	payload, err := compact(st)
	if err != nil {
		return nil, fmt.Errorf("cannot attest: %w", err)
	}
	id, err := trust.KeyID(key.Public())
	if err != nil {
		return nil, fmt.Errorf("cannot attest: %w", err)
	}
	raw, err := hex.DecodeString(id)
	if err != nil {
		return nil, err
	}
	source := rand.Reader
	if _, inMemory := key.(*ecdsa.PrivateKey); inMemory {
		source = nil
	}
	sig, err := key.Sign(source, preAuth(payload), crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("cannot attest: %w", err)
	}
	b := sigstoreBundle{MediaType: trust.MediaType, Envelope: envelope{
		Payload: strictBase64.EncodeToString(payload), PayloadType: payloadType,
		Signatures: []signature{{strictBase64.EncodeToString(sig)}},
	}}
	b.Material.PublicKey.Hint = strictBase64.EncodeToString(raw)
	return compact(b)
}

// Verify returns the statement in b when a key that the root in force trusts for
// releases signed it. Only what Sign writes is read. The error is a fault of
// kind Refused.
func Verify(b []byte, p *trust.Policy) (Statement, error) {
	s, err := verify(b, p)
	if err != nil {
		return Statement{}, fault.Refusedf("cannot verify the attestation: %w", err)
	}
	return s, nil
}

func verify(b []byte, p *trust.Policy) (Statement, error) {
	if len(b) > MaxSize {
		return Statement{}, fmt.Errorf("it has more than %d bytes", MaxSize)
	}
	var bundle sigstoreBundle
	if err := strict(b, &bundle); err != nil {
		return Statement{}, err
	}
	e := bundle.Envelope
	if bundle.MediaType != trust.MediaType || e.PayloadType != payloadType || len(e.Signatures) != 1 {
		return Statement{}, errors.New("it is not one statement in a sigstore bundle")
	}
	hint, errHint := strictBase64.DecodeString(bundle.Material.PublicKey.Hint)
	payload, errPayload := strictBase64.DecodeString(e.Payload)
	sig, errSig := strictBase64.DecodeString(e.Signatures[0].Sig)
	if err := errors.Join(errHint, errPayload, errSig); err != nil {
		return Statement{}, errors.New("it is not base64 where it should be")
	}
	key, err := p.Key(hex.EncodeToString(hint), trust.ScopeRelease)
	if err != nil {
		return Statement{}, err
	}
	if !ecdsa.VerifyASN1(key, preAuth(payload), sig) {
		return Statement{}, fmt.Errorf("%w of key %x", trust.ErrBadSignature, hint)
	}
	var st statement
	if err := strict(payload, &st); err != nil {
		return Statement{}, err
	}
	if st.Type != statementType || len(st.Subject) == 0 {
		return Statement{}, errors.New("it states nothing about anything")
	}
	out := Statement{PredicateType: st.PredicateType, Predicate: st.Predicate}
	for _, s := range st.Subject {
		out.Subjects = append(out.Subjects, Subject{Name: s.Name, SHA256: s.Digest["sha256"]})
	}
	return out, nil
}

// strictBase64 has one spelling for the same bytes.
var strictBase64 = base64.StdEncoding.Strict()

// preAuth is the hash of what DSSE signs,
// https://github.com/secure-systems-lab/dsse/blob/master/protocol.md.
func preAuth(payload []byte) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "DSSEv1 %d %s %d ", len(payloadType), payloadType, len(payload))
	h.Write(payload)
	return h.Sum(nil)
}

// compact writes JSON without white space.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// strict reads what compact wrote for v, and no other spelling of it.
func strict(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return err
	}
	again, err := compact(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, b) {
		return errors.New("it is not written as mesh-release writes it")
	}
	return nil
}
