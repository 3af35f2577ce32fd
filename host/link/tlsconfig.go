package link

import (
	"crypto/tls"
	"crypto/x509"
)

// ClientTLS is how a node speaks to the control plane of mesh: TLS 1.3 only,
// the mesh root known by its key (pins), the controller by its URI, no DNS
// names, whatever the clock says. cert is the node's, or nil before it has
// one. A handshake with anybody else fails with the code pin_mismatch before a
// byte of HTTP is sent.
func ClientTLS(mesh string, pins []string, cert *tls.Certificate) *tls.Config {
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2", "http/1.1"},
		// The library's own verification needs a DNS name and a right clock;
		// VerifyConnection below takes its place, on every handshake.
		InsecureSkipVerify: true,
		// Unlike VerifyPeerCertificate, this one runs on resumption too.
		VerifyConnection: func(cs tls.ConnectionState) error {
			return verifyController(cs, mesh, pins)
		},
	}
	if cert != nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			// Whatever authorities the server hints at: we have one certificate.
			return cert, nil
		}
	}
	return cfg
}

func verifyController(cs tls.ConnectionState, mesh string, pins []string) error {
	if err := VerifyChain(cs.PeerCertificates, pins, x509.ExtKeyUsageServerAuth); err != nil {
		return err
	}
	uri, err := onlyURI(cs.PeerCertificates[0])
	if err != nil {
		return PinMismatch.Errorf("cannot trust the peer: %w", err)
	}
	if want := ControllerURI(mesh); *uri != *want {
		return PinMismatch.Errorf("cannot trust the peer: its certificate names %q, not %q", clip(uri.String()), want)
	}
	return nil
}
