package ca

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// rotated are the authorities of one mesh, the first first.
func rotated(t *testing.T, times int) []*Authority {
	t.Helper()
	key, root, err := Create("m1", start)
	if err != nil {
		t.Fatal(err)
	}
	var before []Before
	var out []*Authority
	for i := 0; ; i++ {
		a, err := Load("m1", key, root, before...)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
		if i == times {
			return out
		}
		var b Before
		if key, root, b, err = Rotate("m1", key, root, start.AddDate(i, 0, 0)); err != nil {
			t.Fatal(err)
		}
		before = append([]Before{b}, before...)
	}
}

func TestE06ANodeThatKnowsAnyEarlierRootRecognisesTheMesh(t *testing.T) {
	all := rotated(t, MaxBefore)
	last := all[MaxBefore]
	for i, then := range all {
		if err := meets(t, last, then.Pin()); err != nil {
			t.Errorf("a node that knows root %d: %v", i, err)
		}
		if id, err := last.VerifyNode(nodeCert(t, then, "n1", start)); err != nil || id != "n1" {
			t.Errorf("a node whose certificate is of root %d: %q, %v", i, id, err)
		}
		if !last.Knows(then.Pin()) || i < MaxBefore && then.Knows(last.Pin()) {
			t.Errorf("root %d: who knows whom", i)
		}
	}
	stranger := authority(t, "m1", start)
	if err := meets(t, last, stranger.Pin()); link.CodeOf(err) != link.PinMismatch {
		t.Errorf("a node that knows another root: %v", err)
	}
	if _, err := last.VerifyNode(nodeCert(t, stranger, "n1", start)); err == nil {
		t.Error("a node of another root is let in")
	}
}

// meets has a node that knows a pin shake hands with a control plane.
func meets(t *testing.T, a *Authority, pin string) error {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	served := make(chan error, 1)
	go func() { served <- tls.Server(there, a.ServerConfig(clock.At(start.Add(time.Hour)))).Handshake() }()
	c := tls.Client(here, link.ClientTLS("m1", []string{pin}, nil))
	err := c.Handshake()
	here.Close()
	<-served
	return err
}

func TestTheChainEndsInTheFirstRoot(t *testing.T) {
	all := rotated(t, 2)
	chain := all[2].Chain()
	last, err := x509.ParseCertificate(chain[len(chain)-1])
	if err != nil || len(chain) != 3 || link.Pin(last) != all[0].Pin() {
		t.Errorf("%d certificates, %v", len(chain), err)
	}
}
