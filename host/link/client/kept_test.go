package client

import (
	"bytes"
	"crypto/x509"
	"slices"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

func TestTheValueOfASessionIsKeptAndSaidAtTheNext(t *testing.T) {
	p, m := newPlane(t), newMachine()
	_, path := running(t, p, m)
	var said [][]link.SessionValue
	for _, v := range []link.SessionValue{"1-000000000000000a", "2-000000000000000b", "3-000000000000000c"} {
		s := next(t, p.streams, "the link")
		said = append(said, s.opening.Sessions)
		s.send(t, link.Message{Type: link.MessageHeartbeat, Session: v})
		if got := next(t, p.kept, "the word that it is kept"); got != v {
			t.Fatalf("kept %q, want %q", got, v)
		}
		// It is on the disk when the control plane hears of it.
		if id, err := LoadIdentity(path); err != nil || len(id.Sessions) == 0 || id.Sessions[0] != v {
			t.Fatalf("on disk: %+v, %v", id.Sessions, err)
		}
		// Asked whether it is there, it says it again.
		s.send(t, link.Message{Type: link.MessageConfirm})
		if got := next(t, p.kept, "the word that it is there"); got != v {
			t.Errorf("it says %q", got)
		}
		close(s.end)
	}
	want := [][]link.SessionValue{nil, {"1-000000000000000a"}, {"2-000000000000000b", "1-000000000000000a"}}
	if !slices.EqualFunc(said, want, slices.Equal) {
		t.Errorf("it said %v, want %v", said, want)
	}
}

func TestTheDeclarationInForceIsSaid(t *testing.T) {
	p, m := newPlane(t), newMachine()
	have := link.Position{Epoch: 3, Generation: 7, Digest: "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"}
	running(t, p, m, func(c *Config) { c.Have = func() *link.Position { return &have } })
	if s := next(t, p.streams, "the link"); s.opening.Have == nil || *s.opening.Have != have {
		t.Errorf("it said %+v", s.opening.Have)
	}
}

// The plane's certificates are good from January to April of 2026.
func TestE05E10ACertificateIsRenewedAtTwoThirdsWhateverTheClockSays(t *testing.T) {
	for name, x := range map[string]struct {
		now  time.Time
		want int
	}{
		"a month old":          {time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), 0},
		"two thirds are over":  {time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC), 1},
		"expired long ago":     {time.Date(2028, 3, 5, 0, 0, 0, 0, time.UTC), 1},
		"two years before":     {time.Date(2024, 3, 5, 0, 0, 0, 0, time.UTC), 1},
		"the clock is at 1970": {time.Unix(0, 0), 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, m := newPlane(t), newMachine()
			cfg := config(t, p.token())
			before := enrolled(t, p, cfg)
			client := run(t, cfg.Path, m, func(c *Config) { c.Clock = clock.At(x.now) })
			// It asks once for each session at most, and not again a moment later.
			for range 3 {
				s := next(t, p.streams, "the link")
				s.send(t, link.Message{Type: link.MessageHeartbeat})
				s.send(t, link.Message{Type: link.MessageDeclaration, Declaration: inline("{}")})
				next(t, m.declarations, "the declaration")
				close(s.end)
			}
			if client.State().Revoked != "" {
				t.Error("it counts as revoked")
			}
			after, err := LoadIdentity(cfg.Path)
			if err != nil {
				t.Fatal(err)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.renewed != x.want || bytes.Equal(before.Certificate, after.Certificate) != (x.want == 0) {
				t.Errorf("renewed %d times, want %d; the same certificate: %v", p.renewed, x.want, bytes.Equal(before.Certificate, after.Certificate))
			}
			c, err := x509.ParseCertificate(after.Certificate)
			if err != nil || !before.key().PublicKey.Equal(c.PublicKey) {
				t.Errorf("the certificate is for another key, %v", err)
			}
		})
	}
}
