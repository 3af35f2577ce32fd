package link_test

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestPinIsTheHashOfThePublicKeyAlone(t *testing.T) {
	root := newCA(t, "root", ages["now"])
	spki, err := x509.MarshalPKIXPublicKey(&root.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(spki)
	if got := link.Pin(root.cert); got != hex.EncodeToString(sum[:]) {
		t.Error(got)
	}
}

func TestNodeURIIsReadInItsExactFormOnly(t *testing.T) {
	mesh, node, err := link.ParseNodeURI(link.NodeURI("m1", "n-7"))
	if err != nil || mesh != "m1" || node != "n-7" {
		t.Fatal(mesh, node, err)
	}
	for _, s := range []string{
		"nox://m1/controller", "nox://m1/node/", "nox://m1/node/a/b", "nox://m1/node/A", "nox://m1/node/a?x", "nox://m1/node/a?",
		"nox://m1/node/a#b", "nox://u@m1/node/a", "nox://m1:1/node/a", "https://m1/node/a", "nox:/node/a", "nox://m1/node/%61",
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if mesh, node, err := link.ParseNodeURI(u); err == nil {
			t.Errorf("%q is read as node %q of mesh %q", s, node, mesh)
		}
	}
}

// handshake is both ends of a TLS connection over loopback.
func handshake(t *testing.T, server, client *tls.Config) (s, c *tls.Conn, err error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan *tls.Conn, 1)
	go func() {
		raw, err := l.Accept()
		if err != nil {
			close(accepted)
			return
		}
		s := tls.Server(raw, server)
		_ = s.Handshake()
		accepted <- s
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client = client.Clone()
	client.ServerName = "127.0.0.1"
	c = tls.Client(raw, client)
	err = c.Handshake()
	if err != nil {
		c.Close()
	}
	s = <-accepted
	t.Cleanup(func() { c.Close(); s.Close() })
	return s, c, err
}

func serving(cert tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}
}

func TestControllerIsKnownByItsRootWhateverTheDates(t *testing.T) {
	for rootAge, rw := range ages {
		for leafAge, lw := range ages {
			root := newCA(t, "root", rw)
			_, c, err := handshake(t, serving(root.controller(t, "m1", lw)),
				link.ClientTLS("m1", []string{link.Pin(root.cert)}, nil))
			if err != nil {
				t.Fatalf("root of %s, leaf of %s: %v", rootAge, leafAge, err)
			}
			if cs := c.ConnectionState(); cs.Version != tls.VersionTLS13 || cs.NegotiatedProtocol != "h2" {
				t.Errorf("version %x, protocol %q", cs.Version, cs.NegotiatedProtocol)
			}
		}
	}
}

func TestEverybodyElseIsRefused(t *testing.T) {
	root, other := newCA(t, "root", ages["now"]), newCA(t, "root", ages["now"])
	now := ages["now"]
	withRoot := func(uri string, use x509.ExtKeyUsage) tls.Certificate {
		u, _ := url.Parse(uri)
		leaf, key := root.leaf(t, u, use, now)
		return tls.Certificate{Certificate: [][]byte{leaf.Raw, root.cert.Raw}, PrivateKey: key}
	}
	// Another mesh's controller that shows our root, which is public.
	borrowed := other.controller(t, "m1", now)
	borrowed.Certificate[1] = root.cert.Raw
	// A node that makes certificates with its own.
	nodeCert, nodeKey := root.leaf(t, link.NodeURI("m1", "n1"), x509.ExtKeyUsageServerAuth, now)
	byNode := ca{nodeKey, nodeCert}.controller(t, "m1", now)
	byNode.Certificate = append(byNode.Certificate, root.cert.Raw)
	alone := root.controller(t, "m1", now)
	alone.Certificate = alone.Certificate[:1]

	for name, cert := range map[string]tls.Certificate{
		"another root":         other.controller(t, "m1", now),
		"a borrowed root":      borrowed,
		"a node as an issuer":  byNode,
		"no root":              alone,
		"a node":               withRoot("nox://m1/node/n1", x509.ExtKeyUsageServerAuth),
		"another mesh":         withRoot("nox://m2/controller", x509.ExtKeyUsageServerAuth),
		"a longer name":        withRoot("nox://m1/controller/x", x509.ExtKeyUsageServerAuth),
		"a name with a query":  withRoot("nox://m1/controller?x", x509.ExtKeyUsageServerAuth),
		"a client certificate": withRoot("nox://m1/controller", x509.ExtKeyUsageClientAuth),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := handshake(t, serving(cert), link.ClientTLS("m1", []string{link.Pin(root.cert)}, nil))
			if link.CodeOf(err) != link.PinMismatch || fault.KindOf(err) != fault.Refused {
				t.Fatalf("got %v, want a refusal with the code pin_mismatch", err)
			}
		})
	}
	t.Run("TLS 1.2", func(t *testing.T) {
		cfg := serving(root.controller(t, "m1", now))
		cfg.MaxVersion = tls.VersionTLS12
		if _, _, err := handshake(t, cfg, link.ClientTLS("m1", []string{link.Pin(root.cert)}, nil)); err == nil {
			t.Fatal("accepted")
		}
	})
}

func TestVerificationRunsOnResumptionToo(t *testing.T) {
	root, now := newCA(t, "root", ages["now"]), ages["now"]
	server := serving(root.controller(t, "m1", now))
	good := link.ClientTLS("m1", []string{link.Pin(root.cert)}, nil)
	good.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	connect := func(cfg *tls.Config) (bool, error) {
		s, c, err := handshake(t, server, cfg)
		if err != nil {
			return false, err
		}
		// The session ticket comes with the first bytes.
		if _, err := s.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return c.ConnectionState().DidResume, nil
	}
	if _, err := connect(good); err != nil {
		t.Fatal(err)
	}
	if resumed, err := connect(good); err != nil || !resumed {
		t.Fatalf("resumed %v: %v", resumed, err)
	}
	distrusting := link.ClientTLS("m1", []string{strings.Repeat("0", 64)}, nil)
	distrusting.ClientSessionCache = good.ClientSessionCache
	if _, err := connect(distrusting); link.CodeOf(err) != link.PinMismatch {
		t.Fatalf("got %v, want pin_mismatch", err)
	}
}

func TestRootRotatedTwiceStillLeadsToTheOldPin(t *testing.T) {
	old, middle, latest := newCA(t, "one", ages["1970"]), newCA(t, "two", ages["now"]), newCA(t, "three", ages["2100"])
	cert := latest.controller(t, "m1", ages["now"])
	cert.Certificate = [][]byte{cert.Certificate[0],
		middle.signed(t, latest, ages["now"]).Raw, old.signed(t, middle, ages["now"]).Raw, old.cert.Raw}
	if _, _, err := handshake(t, serving(cert), link.ClientTLS("m1", []string{link.Pin(old.cert)}, nil)); err != nil {
		t.Error("pin of the first root:", err)
	}
	if _, _, err := handshake(t, serving(cert), link.ClientTLS("m1", []string{link.Pin(latest.cert)}, nil)); err != nil {
		t.Error("pin of the last root:", err)
	}
}
