package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
)

const (
	rootLife       = 30 * 365 * 24 * time.Hour
	controllerLife = 90 * 24 * time.Hour
	nodeLife       = 30 * 24 * time.Hour
	// skew lets a machine whose clock is a little behind use a new certificate
	// with tools that look at dates.
	skew = time.Hour
)

// An Authority signs for one mesh.
type Authority struct {
	mesh string
	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

// Create makes the root of a mesh. It returns the key (PKCS #8) and the
// certificate, both DER, for Load.
func Create(mesh string, now time.Time) (key, root []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the mesh root's key: %w", err)
	}
	t, err := template(now, rootLife)
	if err != nil {
		return nil, nil, err
	}
	t.Subject = pkix.Name{CommonName: "nox-mesh root " + mesh}
	t.IsCA, t.BasicConstraintsValid = true, true
	t.MaxPathLenZero = true
	t.KeyUsage = x509.KeyUsageCertSign
	root, err = x509.CreateCertificate(rand.Reader, t, t, k.Public(), k)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the mesh root: %w", err)
	}
	key, err = x509.MarshalPKCS8PrivateKey(k)
	return key, root, err
}

// Load takes up a root that Create made.
func Load(mesh string, key, root []byte) (*Authority, error) {
	k, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot read the mesh root's key: %w", err)
	}
	ec, ok := k.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("cannot read the mesh root's key: it is a %T", k)
	}
	c, err := x509.ParseCertificate(root)
	if err != nil {
		return nil, fmt.Errorf("cannot read the mesh root: %w", err)
	}
	if !ec.PublicKey.Equal(c.PublicKey) {
		return nil, errors.New("cannot use the mesh root: its key is another's")
	}
	return &Authority{mesh: mesh, key: ec, root: c}, nil
}

// Mesh returns the id of the mesh.
func (a *Authority) Mesh() string { return a.mesh }

// Root returns the root's certificate, DER.
func (a *Authority) Root() []byte { return a.root.Raw }

// Pin returns the pin of the root: what a token carries of it.
func (a *Authority) Pin() string { return link.Pin(a.root) }

// Node makes the certificate of a node for a public key, DER.
func (a *Authority) Node(id string, key crypto.PublicKey, now time.Time) ([]byte, error) {
	c, err := a.issue(link.NodeURI(a.mesh, id), "node "+id, key, x509.ExtKeyUsageClientAuth, now, nodeLife)
	if err != nil {
		return nil, fmt.Errorf("cannot make the certificate of node %q: %w", id, err)
	}
	return c, nil
}

func (a *Authority) issue(uri *url.URL, name string, key crypto.PublicKey, use x509.ExtKeyUsage, now time.Time, life time.Duration) ([]byte, error) {
	t, err := template(now, life)
	if err != nil {
		return nil, err
	}
	t.Subject = pkix.Name{CommonName: name}
	t.URIs = []*url.URL{uri}
	t.BasicConstraintsValid = true
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{use}
	return x509.CreateCertificate(rand.Reader, t, a.root, key, a.key)
}

func template(now time.Time, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("cannot make a serial number: %w", err)
	}
	return &x509.Certificate{SerialNumber: serial, NotBefore: now.Add(-skew).UTC(), NotAfter: now.Add(life).UTC()}, nil
}

// A Key is a node's public key.
type Key struct {
	crypto.PublicKey
	// SPKI is the key in DER, ID its SHA-256 in hex: the identity of the node.
	SPKI []byte
	ID   string
}

// RequestKey reads a PKCS #10 request and returns the key it proves to hold.
// Nothing else in the request is looked at.
func RequestKey(csr []byte) (Key, error) {
	r, err := x509.ParseCertificateRequest(csr)
	if err != nil {
		return Key{}, fmt.Errorf("cannot read the certificate request: %w", err)
	}
	switch k := r.PublicKey.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return Key{}, fmt.Errorf("cannot use the node's key: curve %s is not P-256", k.Curve.Params().Name)
		}
	default:
		return Key{}, fmt.Errorf("cannot use the node's key: %s is neither ECDSA P-256 nor Ed25519", r.PublicKeyAlgorithm)
	}
	if err := r.CheckSignature(); err != nil {
		return Key{}, fmt.Errorf("cannot use the certificate request: %w", err)
	}
	return Key{r.PublicKey, r.RawSubjectPublicKeyInfo, KeyID(r.RawSubjectPublicKeyInfo)}, nil
}

// KeyID returns Key.ID of a key in DER, as link.Pin does of a certificate's.
func KeyID(spki []byte) string {
	sum := sha256.Sum256(spki)
	return hex.EncodeToString(sum[:])
}
