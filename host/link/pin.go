package link

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Pin is the SHA-256 of a certificate's public key (SubjectPublicKeyInfo, as
// in RFC 7469), 64 lower-case hex digits. It stays the same when the
// certificate is made anew with the same key.
func Pin(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

var pinForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func validPin(s string) bool { return pinForm.MatchString(s) }

var idForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// CheckID says whether s can be a mesh id or a node id: 1 to 63 lower-case
// letters, digits and hyphens, no hyphen at either end.
func CheckID(s string) error {
	if !idForm.MatchString(s) {
		return fmt.Errorf("%q is not 1 to 63 lower-case letters, digits and hyphens", clip(s))
	}
	return nil
}

// ControllerURI is the one URI SAN of a control plane's certificate.
func ControllerURI(mesh string) *url.URL {
	return &url.URL{Scheme: "nox", Host: mesh, Path: "/controller"}
}

// NodeURI is the one URI SAN of a node's certificate: nox://MESH/node/ID.
func NodeURI(mesh, nodeID string) *url.URL {
	return &url.URL{Scheme: "nox", Host: mesh, Path: "/node/" + nodeID}
}

// ParseNodeURI is the reverse of NodeURI; it accepts that exact form only.
func ParseNodeURI(u *url.URL) (mesh, nodeID string, err error) {
	id, ok := strings.CutPrefix(u.Path, "/node/")
	if !ok || CheckID(u.Host) != nil || CheckID(id) != nil || u.String() != NodeURI(u.Host, id).String() {
		return "", "", fmt.Errorf("%q does not name a node", clip(u.String()))
	}
	return u.Host, id, nil
}

// NodeOf returns whom a node's certificate names. It looks at the name only:
// VerifyChain says whether to believe it.
func NodeOf(cert *x509.Certificate) (mesh, nodeID string, err error) {
	u, err := onlyURI(cert)
	if err != nil {
		return "", "", err
	}
	return ParseNodeURI(u)
}

func onlyURI(cert *x509.Certificate) (*url.URL, error) {
	if len(cert.URIs) != 1 || len(cert.DNSNames)+len(cert.IPAddresses)+len(cert.EmailAddresses) != 0 {
		return nil, fmt.Errorf("the certificate does not have exactly one name, a URI")
	}
	return cert.URIs[0], nil
}

// VerifyChain says whether presented (leaf first, what leads to the root after
// it, the root last) ends in a root one of pins names, with a leaf for that
// use. Dates never refuse: a machine may think it is 1970, and a node that was
// away for a year comes back. Revocation is the control plane's memory of keys.
//
// A root that was rotated is presented as its certificate signed by the one
// before, followed by that one: any number of steps lead to the pin.
func VerifyChain(presented []*x509.Certificate, pins []string, use x509.ExtKeyUsage) error {
	if len(presented) < 2 || len(presented) > maxChain {
		return PinMismatch.Errorf("cannot trust the peer: it shows %d certificates, not 2 to %d", len(presented), maxChain)
	}
	roots, others := x509.NewCertPool(), x509.NewCertPool()
	pinned := false
	for _, c := range presented[1:] {
		for _, p := range pins {
			if Pin(c) == p {
				roots.AddCert(undated(c))
				pinned = true
			}
		}
		others.AddCert(undated(c))
	}
	if !pinned {
		last := presented[len(presented)-1]
		return PinMismatch.Errorf("cannot trust the peer: the key of its mesh root is %s, not the expected one", Pin(last))
	}
	_, err := undated(presented[0]).Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: others, CurrentTime: someDay,
		KeyUsages: []x509.ExtKeyUsage{use},
	})
	if err != nil {
		return PinMismatch.Errorf("cannot trust the peer: its certificate does not lead to the mesh root: %w", err)
	}
	return nil
}

const maxChain = 8

var someDay = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// undated is the certificate as if it were valid on someDay. crypto/x509
// judges dates by these fields and signatures by the raw bytes, so everything
// else it checks stays checked.
func undated(c *x509.Certificate) *x509.Certificate {
	u := *c
	u.NotBefore, u.NotAfter = someDay.Add(-time.Hour), someDay.Add(time.Hour)
	return &u
}
