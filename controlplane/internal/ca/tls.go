package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// VerifyNode returns the id in a node's certificate if the mesh root made it, or one
// before that. It asks no clock, and does not know whether the node is revoked.
func (a *Authority) VerifyNode(c *x509.Certificate) (string, error) {
	err := verify(c, a.root)
	for _, root := range a.before {
		if err == nil {
			break
		}
		err = verify(c, root)
	}
	if err != nil {
		return "", err
	}
	mesh, id, err := link.NodeOf(c)
	if err != nil {
		return "", err
	}
	if mesh != a.mesh {
		return "", fmt.Errorf("the certificate is of mesh %q", mesh)
	}
	return id, nil
}

func verify(c, root *x509.Certificate) error {
	return link.VerifyChain([]*x509.Certificate{c, root}, []string{link.Pin(root)}, x509.ExtKeyUsageClientAuth)
}

// ServerConfig is how the control plane speaks TLS: 1.3 only, with a
// certificate that is renewed at two thirds of its life. A client may show no
// certificate (it is about to enrol); one it shows must be a node's of this
// mesh. The check sits in VerifyConnection because VerifyPeerCertificate is
// passed over on resumed sessions; whether the node may do what it asks is for
// each request to decide.
func (a *Authority) ServerConfig(c clock.Clock) *tls.Config {
	keeper := &keeper{authority: a, clock: c}
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: keeper.certificate,
		// Not VerifyClientCertIfGiven: that one looks at dates.
		ClientAuth: tls.RequestClientCert,
		VerifyConnection: func(cs tls.ConnectionState) error {
			if len(cs.PeerCertificates) == 0 {
				return nil
			}
			_, err := a.VerifyNode(cs.PeerCertificates[0])
			return err
		},
		SessionTicketsDisabled: true,
	}
}

// keeper holds the controller's certificate of the moment.
type keeper struct {
	authority *Authority
	clock     clock.Clock

	mu      sync.Mutex
	current *tls.Certificate
}

func (k *keeper) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	if k.current == nil || due(k.current.Leaf, now) {
		c, err := k.authority.controller(now)
		if err != nil {
			return nil, err
		}
		k.current = c
	}
	return k.current, nil
}

// due reports that a certificate is to be made again: two thirds of its life
// are over, or the clock is before it began.
func due(c *x509.Certificate, now time.Time) bool {
	return now.Before(c.NotBefore) || now.After(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore)*2/3))
}

// controller makes the controller's key and certificate.
func (a *Authority) controller(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make the controller's key: %w", err)
	}
	der, err := a.issue(link.ControllerURI(a.mesh), "controller", key.Public(), x509.ExtKeyUsageServerAuth, now, controllerLife)
	if err != nil {
		return nil, fmt.Errorf("cannot make the controller's certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: append([][]byte{der}, a.chain...), PrivateKey: key, Leaf: leaf}, nil
}
