package trust

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// An envelope is a DSSE envelope
// (https://github.com/secure-systems-lab/dsse/blob/master/envelope.md).
type envelope struct {
	Payload     string              `json:"payload"`
	PayloadType string              `json:"payloadType"`
	Signatures  []envelopeSignature `json:"signatures"`
}

// An envelopeSignature carries the key id in a root only: in a sigstore bundle
// it is empty, and the key hint says which key it was.
type envelopeSignature struct {
	KeyID string `json:"keyid,omitempty"`
	Sig   string `json:"sig"`
}

// strictBase64 refuses non-zero padding bits, so that one signature has one
// spelling.
var strictBase64 = base64.StdEncoding.Strict()

// preAuth is the hash of what DSSE signs: the type is part of it, so a valid
// signature over one type is none over another.
func preAuth(payloadType string, payload []byte) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "DSSEv1 %d %s %d ", len(payloadType), payloadType, len(payload))
	h.Write(payload)
	return h.Sum(nil)
}

func (s envelopeSignature) verifies(pub *ecdsa.PublicKey, sum []byte) bool {
	sig, err := strictBase64.DecodeString(s.Sig)
	return err == nil && ecdsa.VerifyASN1(pub, sum, sig)
}

func signEnvelope(payloadType string, payload []byte, keyID bool, keys ...crypto.Signer) (envelope, error) {
	e := envelope{
		Payload:     strictBase64.EncodeToString(payload),
		PayloadType: payloadType,
		Signatures:  []envelopeSignature{},
	}
	sum := preAuth(payloadType, payload)
	for _, key := range keys {
		id, err := KeyID(key.Public())
		if err != nil {
			return e, err
		}
		sig, err := signDigest(key, sum)
		if err != nil {
			return e, fmt.Errorf("cannot sign with key %s: %w", id, err)
		}
		s := envelopeSignature{Sig: strictBase64.EncodeToString(sig)}
		if keyID {
			s.KeyID = id
		}
		e.Signatures = append(e.Signatures, s)
	}
	return e, nil
}
