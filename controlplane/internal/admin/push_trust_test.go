package admin_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestARootThatAPushBroughtStaysInForce: what the machine brought is older, and
// the key it names for releases counts no more.
func TestARootThatAPushBroughtStaysInForce(t *testing.T) {
	client, desk := open(t)
	p := publisher(t, desk)
	if err := os.RemoveAll(desk.Layout.AdminTrust()); err != nil { // roots alone
		t.Fatal(err)
	}
	key := func(scope trust.Scope) (*ecdsa.PrivateKey, trust.Key) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		named, err := trust.NewKey(&k.PublicKey, scope)
		if err != nil {
			t.Fatal(err)
		}
		return k, named
	}
	signed := func(r trust.Root, by crypto.Signer) []byte {
		b, err := trust.SignRoot(r, by)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	root, rootKey := key(trust.ScopeRoot)
	old, oldKey := key(trust.ScopeRelease)
	next, nextKey := key(trust.ScopeRelease)
	one := trust.NewRoot(nil, []trust.Key{rootKey, oldKey})
	two := trust.NewRoot(&one, []trust.Key{rootKey, nextKey}, oldKey.ID)
	first, second := signed(one, root), signed(two, root)
	shipped := desk.Layout.ShippedTrust("/usr")
	if err := os.MkdirAll(shipped, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shipped, "1.root.json"), first, 0o644); err != nil {
		t.Fatal(err)
	}
	push := func(counter uint64, by crypto.Signer, roots ...[]byte) error {
		spec := p.Spec("web", counter, "x")
		spec.Signers, spec.Roots = []crypto.Signer{by}, roots
		_, err := admin.SendBundle(t.Context(), client, admin.Push{}, bytes.NewReader(built(t, spec)))
		return err
	}
	if err := push(1, old, first); err != nil {
		t.Fatal(err)
	}
	if err := push(2, next, first, second); err != nil {
		t.Fatal(err)
	}
	if err := push(3, old, first); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "revoked key") {
		t.Errorf("signed by a key that was revoked: %v", err)
	}
	if err := push(3, next, first, second); err != nil {
		t.Error(err)
	}
}
