package link_test

import (
	"crypto/sha256"
	"crypto/tls"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/link"
)

func TestProofHoldsForItsConnectionAndItsBodyOnly(t *testing.T) {
	root := newCA(t, "root", ages["now"])
	server := serving(root.controller(t, "m1", ages["now"]))
	client := link.ClientTLS("m1", []string{link.Pin(root.cert)}, nil)
	connect := func() (s, c tls.ConnectionState) {
		sc, cc, err := handshake(t, server, client)
		if err != nil {
			t.Fatal(err)
		}
		return sc.ConnectionState(), cc.ConnectionState()
	}
	s1, c1 := connect()
	s2, _ := connect()
	token, err := link.ParseToken([]byte(golden))
	if err != nil {
		t.Fatal(err)
	}
	other, err := link.NewToken("m1", token.Addresses, token.Pins, token.Expires, "")
	if err != nil {
		t.Fatal(err)
	}
	body := sha256.Sum256([]byte("body"))
	proof, err := link.Prove(token, c1, body)
	if err != nil {
		t.Fatal(err)
	}
	if err := link.VerifyProof(token.PublicKey(), s1, body, proof); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(proof, "\r\n =") {
		t.Errorf("%q does not fit into a header", proof)
	}
	for name, err := range map[string]error{
		"another connection": link.VerifyProof(token.PublicKey(), s2, body, proof),
		"another body":       link.VerifyProof(token.PublicKey(), s1, sha256.Sum256([]byte("Body")), proof),
		"another token":      link.VerifyProof(other.PublicKey(), s1, body, proof),
		"no key":             link.VerifyProof(nil, s1, body, proof),
		"cut":                link.VerifyProof(token.PublicKey(), s1, body, proof[:len(proof)-1]),
		"empty":              link.VerifyProof(token.PublicKey(), s1, body, ""),
		"no TLS":             link.VerifyProof(token.PublicKey(), tls.ConnectionState{}, body, proof),
	} {
		if link.CodeOf(err) != link.BadProof {
			t.Errorf("%s: got %v, want bad_proof", name, err)
		}
	}
	if _, err := link.Prove(link.Token{}, c1, body); err == nil {
		t.Error("a token without a secret proved something")
	}
}
