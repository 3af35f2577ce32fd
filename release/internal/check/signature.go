package check

import (
	"bytes"
	"encoding/json"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A signatureFile is a signature as mesh-release writes it: the keys of a sigstore
// bundle in this order, with no blank between and nothing after.
type signatureFile struct {
	Envelope struct {
		Payload     []byte `json:"payload"`
		PayloadType string `json:"payloadType"`
		Signatures  [1]struct {
			Sig []byte `json:"sig"`
		} `json:"signatures"`
	} `json:"dsseEnvelope"`
	MediaType string `json:"mediaType"`
	Material  struct {
		PublicKey struct {
			Hint []byte `json:"hint"`
		} `json:"publicKey"`
	} `json:"verificationMaterial"`
}

// A statementFile is what it signs, in the same form.
type statementFile struct {
	Type          string       `json:"_type"`
	Predicate     struct{}     `json:"predicate"`
	PredicateType string       `json:"predicateType"`
	Subject       [1]subjectOf `json:"subject"`
}

type subjectOf struct {
	Digest struct {
		SHA256 string `json:"sha256"`
	} `json:"digest"`
}

// writtenFor holds that b is a signature, by whatever key, of content with this
// digest, and to the byte as mesh-release writes it. Whether it is true is not looked
// at: that takes the key. A release holds what mesh-release writes, so that there is
// one spelling of it, and no place for anything else.
func writtenFor(b []byte, content digest.Digest) error {
	other := fault.Refusedf("it is not written as mesh-release writes a signature").Hint("sign the file again with \"mesh-release sign\"")
	var s signatureFile
	if !reads(b, &s) {
		return other
	}
	var of statementFile
	if !reads(s.Envelope.Payload, &of) || s.MediaType != trust.MediaType || of.PredicateType != trust.PredicateType ||
		len(s.Material.PublicKey.Hint) != 32 || len(s.Envelope.Signatures[0].Sig) == 0 {
		return other
	}
	if of.Subject[0].Digest.SHA256 != content.Encoded() {
		return fault.Refusedf("it is about another file")
	}
	return nil
}

// reads reads a document and reports whether it is what writing it gives.
func reads(b []byte, to any) bool {
	if json.Unmarshal(b, to) != nil {
		return false
	}
	var again bytes.Buffer
	e := json.NewEncoder(&again)
	e.SetEscapeHTML(false)
	return e.Encode(to) == nil && bytes.Equal(bytes.TrimSuffix(again.Bytes(), []byte("\n")), b)
}

// written holds the form of the signature beside the file name, which was read.
func (l Listing) written(name string, content digest.Digest) error {
	b, err := l.Read(name+trust.SignatureSuffix, trust.MaxSignature)
	if err != nil {
		return err
	}
	if err := writtenFor(b, content); err != nil {
		return bad(name+trust.SignatureSuffix, "%w", err)
	}
	return nil
}
