package wire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"net/http"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

// TestACertificateOfTheMeshRootIsNoNodeByItself: whoever has the mesh root's key can
// make a certificate for any node, and is none: the control plane knows a node by its
// key.
func TestACertificateOfTheMeshRootIsNoNodeByItself(t *testing.T) {
	p := newPlane(t)
	n := p.node("a")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := p.office.Authority.Node(n.ID, key.Public(), start)
	if err != nil {
		t.Fatal(err)
	}
	thief := *n
	thief.Key, thief.Certificate = key, &tls.Certificate{Certificate: [][]byte{der, p.office.Authority.Chain()[0]}, PrivateKey: key}
	if _, err := thief.Open(t.Context()); link.CodeOf(err) != link.NodeUnknown {
		t.Errorf("the thief's link: %v", err)
	}
	if status, a, err := thief.Post(t.Context(), link.PathInventory, profile.Inventory{}); err != nil || status != http.StatusForbidden || a.Code != link.NodeUnknown {
		t.Errorf("the thief's inventory: %d, %+v, %v", status, a, err)
	}
	if _, err := n.Open(t.Context()); err != nil {
		t.Errorf("the node's link: %v", err)
	}
}
