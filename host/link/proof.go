package link

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"fmt"
)

const (
	// exporterLabel is ours alone (RFC 8446, 7.5; RFC 5705, 4).
	exporterLabel = "EXPORTER-nox-mesh-enrolment-v1"
	proofLabel    = "nox-mesh enrolment proof v1\x00"
)

// Prove signs, with the token's secret, one body on one connection. The server
// of another connection, or another body, finds it worthless: there is nothing
// to replay, and nobody in the middle can swap what was signed.
func Prove(t Token, cs tls.ConnectionState, bodyHash [sha256.Size]byte) (string, error) {
	if t.seed == nil {
		return "", fmt.Errorf("cannot prove a token: it has no secret")
	}
	m, err := proofMessage(cs, bodyHash)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(ed25519.Sign(t.privateKey(), m)), nil
}

// VerifyProof says whether proof (the header) was made with the secret of pub
// for this connection and this body. The error is a refusal with the code
// bad_proof.
func VerifyProof(pub ed25519.PublicKey, cs tls.ConnectionState, bodyHash [sha256.Size]byte, proof string) error {
	sig, err := base64.RawURLEncoding.Strict().DecodeString(proof)
	if err != nil || len(sig) != ed25519.SignatureSize || len(pub) != ed25519.PublicKeySize {
		return BadProof.Errorf("cannot accept the proof: it is not a signature")
	}
	m, err := proofMessage(cs, bodyHash)
	if err != nil {
		return err
	}
	if !ed25519.Verify(pub, m, sig) {
		return BadProof.Errorf("cannot accept the proof: it was not made with this token, for this connection and this body")
	}
	return nil
}

// proofMessage is label, exporter, hash: all three of fixed length, so that no
// two different triples give the same bytes.
func proofMessage(cs tls.ConnectionState, bodyHash [sha256.Size]byte) ([]byte, error) {
	if !cs.HandshakeComplete || cs.Version != tls.VersionTLS13 {
		return nil, BadProof.Errorf("cannot bind the proof to the connection: it is not TLS 1.3")
	}
	exported, err := cs.ExportKeyingMaterial(exporterLabel, nil, 32)
	if err != nil {
		return nil, fmt.Errorf("cannot bind the proof to the connection: %w", err)
	}
	m := append([]byte(proofLabel), exported...)
	return append(m, bodyHash[:]...), nil
}
