package service

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// A plane is a control plane that says to its one node, at each connection, what
// it shall be, and hears what it did. It never learns that the node leaves.
type plane struct {
	*httptest.Server
	declaration link.DeclarationMessage

	mu      sync.Mutex
	reports []link.Report
	// deaf answers no report.
	deaf bool
}

const meshID, nodeID = "m1", "n1"

// issuer is the mesh's root.
type issuer struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newIssuer(t testing.TB) *issuer {
	i := &issuer{t: t, key: newKey(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	i.root = template
	i.root = i.sign(template, &i.key.PublicKey)
	return i
}

func (i *issuer) sign(template *x509.Certificate, pub *ecdsa.PublicKey) *x509.Certificate {
	i.t.Helper()
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, i.root, pub, i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		i.t.Fatal(err)
	}
	return c
}

func (i *issuer) issue(uri *url.URL, use x509.ExtKeyUsage, pub *ecdsa.PublicKey) *x509.Certificate {
	return i.sign(&x509.Certificate{SerialNumber: big.NewInt(2), URIs: []*url.URL{uri},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use}}, pub)
}

// newPlane serves a mesh that declares document for its node.
func newPlane(t testing.TB, i *issuer, document []byte) *plane {
	p := &plane{declaration: link.DeclarationMessage{Mesh: meshID, Epoch: 1, Generation: 1,
		Digest: digest.FromBytes(document).String(), Size: int64(len(document)), Document: document}}
	key := newKey(t)
	leaf := i.issue(link.ControllerURI(meshID), x509.ExtKeyUsageServerAuth, &key.PublicKey)
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.TLS = &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: tls.RequestClientCert,
		Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw, i.root.Raw}, PrivateKey: key}}}
	p.StartTLS()
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

func (p *plane) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case link.PathLink:
		w.WriteHeader(http.StatusOK)
		_ = link.NewWriter(w).Write(link.Message{Type: link.MessageDeclaration, Declaration: &p.declaration})
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	case link.PathReports:
		var rep link.Report
		p.mu.Lock()
		deaf := p.deaf || json.NewDecoder(r.Body).Decode(&rep) != nil
		if !deaf {
			p.reports = append(p.reports, rep)
		}
		p.mu.Unlock()
		if deaf {
			panic(http.ErrAbortHandler)
		}
	}
	_ = json.NewEncoder(w).Encode(link.Answer{ServerTime: time.Now()})
}

func (p *plane) heard() []link.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]link.Report(nil), p.reports...)
}

// enrolled makes the machine a node of the mesh, whose control plane is at address.
func enrolled(t testing.TB, cfg Config, i *issuer, address string) {
	t.Helper()
	key := newKey(t)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{
		"state": "active", "enrolment_id": "00112233445566778899aabbccddeeff", "mesh": meshID, "node_id": nodeID, "name": "web",
		"key": secret, "certificate": i.issue(link.NodeURI(meshID, nodeID), x509.ExtKeyUsageClientAuth, &key.PublicKey).Raw,
		"chain": [][]byte{i.root.Raw}, "pins": []string{link.Pin(i.root)}, "addresses": []string{address}, "epoch": 1, "generation": 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := durable.MkdirAll(cfg.Layout.HostState(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(cfg.Layout.HostIdentity(), b, 0o600); err != nil {
		t.Fatal(err)
	}
}
