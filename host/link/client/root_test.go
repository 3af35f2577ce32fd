package client

import (
	"crypto/x509"
	"slices"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// after gives a mesh another root, signed by the one before, at another address.
func after(p *plane) planeOption {
	return func(q *plane) {
		q.key = newKey(q.t)
		next := *p.root
		next.PublicKey = nil
		q.root = p.create(&next, p.root, &q.key.PublicKey)
		q.above = append([][]byte{p.root.Raw}, p.above...)
		q.nodes, q.tokens, q.acked = p.nodes, p.tokens, p.acked
		q.oldest = p.oldest
		if q.oldest == "" {
			q.oldest = link.Pin(p.root)
		}
	}
}

func TestE06ARootThatRotatedTwiceWhileTheNodeWasAwayIsLearned(t *testing.T) {
	first := newPlane(t)
	cfg := config(t, first.token())
	id := enrolled(t, first, cfg)
	second := newPlane(t, after(first))
	third := newPlane(t, after(second))
	id.Addresses = []string{third.address()}
	if err := id.Save(cfg.Path); err != nil {
		t.Fatal(err)
	}
	m := newMachine()
	run(t, cfg.Path, m)
	s := next(t, third.streams, "the link")
	s.send(t, link.Message{Type: link.MessageDeclaration, Declaration: inline("{}")})
	next(t, m.declarations, "the declaration")
	now, err := LoadIdentity(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{link.Pin(third.root), link.Pin(first.root)}; !slices.Equal(now.Pins, want) {
		t.Errorf("it knows %v, want %v", now.Pins, want)
	}
	// Its own certificate is under the newest root, for the same key.
	c, err := x509.ParseCertificate(now.Certificate)
	if err != nil || c.CheckSignatureFrom(third.root) != nil {
		t.Errorf("its certificate is under another root: %v", err)
	}
}
