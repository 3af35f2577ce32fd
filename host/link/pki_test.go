package link_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// A ca is a mesh root made by hand.
type ca struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

type window struct{ from, to time.Time }

func year(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }

var ages = map[string]window{
	"1970": {year(1970), year(1971)},
	"2100": {year(2100), year(2101)},
	"now":  {year(2020), year(2049)},
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func create(t testing.TB, template, parent *x509.Certificate, pub *ecdsa.PublicKey, signer *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, pub, signer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rootTemplate(name string, w window) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: w.from, NotAfter: w.to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
}

func newCA(t testing.TB, name string, w window) ca {
	key := newKey(t)
	template := rootTemplate(name, w)
	return ca{key, create(t, template, template, &key.PublicKey, key)}
}

// signed is the certificate of other's root, by this one.
func (c ca) signed(t testing.TB, other ca, w window) *x509.Certificate {
	return create(t, rootTemplate(other.cert.Subject.CommonName, w), c.cert, &other.key.PublicKey, c.key)
}

// leaf makes a certificate and its key.
func (c ca) leaf(t testing.TB, uri *url.URL, use x509.ExtKeyUsage, w window) (*x509.Certificate, *ecdsa.PrivateKey) {
	key := newKey(t)
	return create(t, &x509.Certificate{
		NotBefore: w.from, NotAfter: w.to, URIs: []*url.URL{uri},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use},
	}, c.cert, &key.PublicKey, c.key), key
}

func (c ca) controller(t testing.TB, mesh string, w window) tls.Certificate {
	leaf, key := c.leaf(t, link.ControllerURI(mesh), x509.ExtKeyUsageServerAuth, w)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw, c.cert.Raw}, PrivateKey: key}
}
