package ca

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/clock"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func authority(t *testing.T, mesh string, now time.Time) *Authority {
	t.Helper()
	key, root, err := Create(mesh, now)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Load(mesh, key, root)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func nodeCert(t *testing.T, a *Authority, id string, now time.Time) *x509.Certificate {
	t.Helper()
	pub, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := a.Node(id, pub, now)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestANodesCertificateNamesItAndLivesThirtyDays(t *testing.T) {
	c := nodeCert(t, authority(t, "m1", start), "n1", start)
	if len(c.URIs) != 1 || c.URIs[0].String() != "nox://m1/node/n1" || len(c.DNSNames) != 0 || c.IsCA {
		t.Errorf("names %v %v, CA %v", c.URIs, c.DNSNames, c.IsCA)
	}
	if got := c.NotAfter.Sub(start); got != 30*24*time.Hour {
		t.Errorf("lives %v", got)
	}
}

func TestANodeIsKnownWhateverTheDate(t *testing.T) {
	for _, made := range []time.Time{start, start.AddDate(-2, 0, 0), time.Unix(0, 0), start.AddDate(20, 0, 0)} {
		a := authority(t, "m1", start)
		if id, err := a.VerifyNode(nodeCert(t, a, "n1", made)); err != nil || id != "n1" {
			t.Errorf("made at %v: %q, %v", made, id, err)
		}
	}
}

func TestWhoIsNotANodeOfThisMesh(t *testing.T) {
	a := authority(t, "m1", start)
	controller, err := a.controller(start)
	if err != nil {
		t.Fatal(err)
	}
	twin := authority(t, "m1", start)
	other := &Authority{mesh: "m2", key: a.key, root: a.root}
	for name, c := range map[string]*x509.Certificate{
		"a mesh of the same name":      nodeCert(t, twin, "n1", start),
		"another mesh, the same root":  nodeCert(t, other, "n1", start),
		"the controller":               controller.Leaf,
		"the root":                     a.root,
		"a certificate without a name": func() *x509.Certificate { c := *nodeCert(t, a, "n1", start); c.URIs = nil; return &c }(),
	} {
		if id, err := a.VerifyNode(c); err == nil {
			t.Errorf("%s is taken for node %q", name, id)
		}
	}
}

type moving struct{ now time.Time }

func (m *moving) Now() time.Time { return m.now }

func TestTheControllersCertificateIsRenewedAtTwoThirds(t *testing.T) {
	a := authority(t, "m1", start)
	clk := &moving{start}
	get := func() *x509.Certificate {
		t.Helper()
		c, err := a.ServerConfig(clk).GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf
	}
	if c := get(); c.URIs[0].String() != "nox://m1/controller" || c.NotAfter.Sub(start) != 90*24*time.Hour {
		t.Errorf("%v until %v", c.URIs, c.NotAfter)
	}
	k := &keeper{authority: a, clock: clk}
	at := func(d time.Duration) string {
		t.Helper()
		clk.now = start.Add(d)
		c, err := k.certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.String()
	}
	first := at(0)
	if at(59*24*time.Hour) != first {
		t.Error("renewed too early")
	}
	second := at(61 * 24 * time.Hour)
	if second == first {
		t.Error("not renewed")
	}
	if at(-24*time.Hour) == second {
		t.Error("not made again by a clock that went back")
	}
}

func TestLoadRefusesAKeyThatIsNotTheRoots(t *testing.T) {
	key, _, err := Create("m1", start)
	if err != nil {
		t.Fatal(err)
	}
	_, root, err := Create("m1", start)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load("m1", key, root); err == nil {
		t.Error("no error")
	}
}

func TestRequestKey(t *testing.T) {
	p256, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	for name, c := range map[string]struct {
		key any
		ok  bool
	}{"P-256": {p256, true}, "Ed25519": {ed, true}, "P-384": {p384, false}, "RSA": {rsaKey, false}} {
		csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, c.key)
		if err != nil {
			t.Fatal(err)
		}
		if k, err := RequestKey(csr); (err == nil) != c.ok || c.ok && (len(k.ID) != 64 || len(k.SPKI) == 0) {
			t.Errorf("%s: %v", name, err)
		}
		csr[len(csr)-1] ^= 1
		if _, err := RequestKey(csr); err == nil {
			t.Errorf("%s: a broken signature is taken", name)
		}
	}
}

func FuzzRequestKey(f *testing.F) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	csr, _ := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	f.Add(csr)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := RequestKey(b); err == nil && len(k.ID) != 64 {
			t.Errorf("no error, and key %q", k.ID)
		}
	})
}

var _ clock.Clock = (*moving)(nil)
