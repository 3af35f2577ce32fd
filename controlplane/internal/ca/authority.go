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
	"slices"
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
	// before are the roots that were before it, the newest first, and chain is what
	// leads from what it signs to the first of them, or to itself.
	before []*x509.Certificate
	chain  [][]byte
}

// A Before is a root that another took the place of: its certificate, and that of the
// next root's key, which it signed (both DER).
type Before struct {
	Root  []byte `json:"root"`
	Cross []byte `json:"cross"`
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
	// Without a limit to the length of a path: the root after it is below it.
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage = x509.KeyUsageCertSign
	root, err = x509.CreateCertificate(rand.Reader, t, t, k.Public(), k)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the mesh root: %w", err)
	}
	key, err = x509.MarshalPKCS8PrivateKey(k)
	return key, root, err
}

// Load takes up a root that Create or Rotate made, and those before it, the newest
// first.
func Load(mesh string, key, root []byte, before ...Before) (*Authority, error) {
	ec, c, err := parse(key, root)
	if err != nil {
		return nil, err
	}
	a := &Authority{mesh: mesh, key: ec, root: c, chain: [][]byte{root}}
	if len(before) > 0 {
		a.chain = nil
	}
	for _, b := range before {
		c, err := x509.ParseCertificate(b.Root)
		if err != nil {
			return nil, fmt.Errorf("cannot read a mesh root of before: %w", err)
		}
		a.before = append(a.before, c)
		a.chain = append(a.chain, b.Cross)
	}
	if len(before) > 0 {
		a.chain = append(a.chain, before[len(before)-1].Root)
	}
	return a, nil
}

func parse(key, root []byte) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	k, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the mesh root's key: %w", err)
	}
	ec, ok := k.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("cannot read the mesh root's key: it is a %T", k)
	}
	c, err := x509.ParseCertificate(root)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the mesh root: %w", err)
	}
	if !ec.PublicKey.Equal(c.PublicKey) {
		return nil, nil, errors.New("cannot use the mesh root: its key is another's")
	}
	return ec, c, nil
}

// MaxBefore is how many roots may have been before one: a peer is shown no more
// certificates than it reads (link.VerifyChain).
const MaxBefore = 6

// Rotate makes the root that takes the place of one. It returns the new key and
// certificate, and the old one with what it signed for the new.
func Rotate(mesh string, key, root []byte, now time.Time) (newKey, newRoot []byte, before Before, err error) {
	old, c, err := parse(key, root)
	if err != nil {
		return nil, nil, before, err
	}
	if newKey, newRoot, err = Create(mesh, now); err != nil {
		return nil, nil, before, err
	}
	next, err := x509.ParseCertificate(newRoot)
	if err != nil {
		return nil, nil, before, err
	}
	cross, err := x509.CreateCertificate(rand.Reader, next, c, next.PublicKey, old)
	if err != nil {
		return nil, nil, before, fmt.Errorf("cannot sign the new mesh root: %w", err)
	}
	return newKey, newRoot, Before{Root: root, Cross: cross}, nil
}

// Mesh returns the id of the mesh.
func (a *Authority) Mesh() string { return a.mesh }

// Chain is what leads from a certificate that was made here to the first root of the
// mesh, DER, that root last.
func (a *Authority) Chain() [][]byte { return a.chain }

// Knows says whether a pin is that of the root, or of one before it.
func (a *Authority) Knows(pin string) bool {
	return pin == a.Pin() || slices.ContainsFunc(a.before, func(c *x509.Certificate) bool { return link.Pin(c) == pin })
}

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
