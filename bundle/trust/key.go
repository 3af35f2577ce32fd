package trust

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Scope is what a key may sign.
type Scope string

// The scopes.
const (
	// ScopeRelease signs bundles, manifests and files.
	ScopeRelease Scope = "release"
	// ScopePackage signs packages, by OpenPGP.
	ScopePackage Scope = "package"
	// ScopeRoot signs release roots.
	ScopeRoot Scope = "root"
)

// A Key is a public key as a release root names it.
type Key struct {
	// ID is the hex SHA-256 of the key's SPKI DER, or the fingerprint of an
	// OpenPGP key: 64 or 40 digits, so the one is never taken for the other.
	ID string `json:"id"`
	// OpenPGP is the key as a binary keyring in base64, or "".
	OpenPGP string `json:"openpgp,omitempty"`
	// Public is the key as PEM, ECDSA P-256, or "".
	Public string `json:"public,omitempty"`
	// Scope is sorted and not empty. An OpenPGP key has ScopePackage, any
	// other key the other two.
	Scope []Scope `json:"scope"`
}

// NewKey describes a public key for a root.
func NewKey(public crypto.PublicKey, scope ...Scope) (Key, error) {
	pub, ok := public.(*ecdsa.PublicKey)
	if !ok || pub.Curve != elliptic.P256() {
		return Key{}, errors.New("cannot use the key: it is not ECDSA P-256")
	}
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return Key{}, fmt.Errorf("cannot use the key: %w", err)
	}
	scope = slices.Clone(scope)
	slices.Sort(scope)
	return Key{
		ID:     idOf(der),
		Public: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		Scope:  slices.Compact(scope),
	}, nil
}

// KeyID is the hex SHA-256 of the key's SPKI DER.
func KeyID(public crypto.PublicKey) (string, error) {
	k, err := NewKey(public)
	return k.ID, err
}

func idOf(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// parsePublic reads one PEM block with a P-256 key and nothing else.
func parsePublic(b []byte) (*ecdsa.PublicKey, string, error) {
	block, rest := pem.Decode(b)
	switch {
	case block == nil:
		return nil, "", errors.New("no PEM block")
	case block.Type != "PUBLIC KEY":
		return nil, "", fmt.Errorf("the PEM block is a %q, not a PUBLIC KEY", block.Type)
	case strings.TrimSpace(string(rest)) != "":
		return nil, "", errors.New("something follows the key")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, "", errors.New("the PEM block holds no public key")
	}
	pub, ok := parsed.(*ecdsa.PublicKey)
	if !ok || pub.Curve != elliptic.P256() {
		return nil, "", errors.New("the key is not ECDSA P-256")
	}
	// Encoded anew: one key has one id, however its DER was written.
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, "", err
	}
	return pub, idOf(der), nil
}

// signDigest signs a SHA-256. A key in memory signs deterministically (a nil
// source of randomness means RFC 6979 since Go 1.24); one that is elsewhere
// does as it likes.
func signDigest(key crypto.Signer, sum []byte) ([]byte, error) {
	if k, ok := key.(*ecdsa.PrivateKey); ok {
		return k.Sign(nil, sum, crypto.SHA256)
	}
	return key.Sign(rand.Reader, sum, crypto.SHA256)
}
