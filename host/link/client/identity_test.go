package client

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
)

func TestDamagedIdentityIsNamedAndNotReplaced(t *testing.T) {
	p := newPlane(t)
	cfg := config(t, p.token())
	enrolled(t, p, cfg)
	whole, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	other := newPlane(t)
	otherCfg := config(t, other.token())
	enrolled(t, other, otherCfg)
	foreign, err := os.ReadFile(otherCfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	key := func(b []byte) string {
		_, s, _ := strings.Cut(string(b), `"key": "`)
		s, _, _ = strings.Cut(s, `"`)
		return s
	}
	for name, damaged := range map[string]string{
		"empty": "", "cut": string(whole[:len(whole)/2]), "another key": strings.Replace(string(whole), key(whole), key(foreign), 1),
		"unknown state": strings.Replace(string(whole), `"active"`, `"great"`, 1), "too long": strings.Repeat(" ", maxIdentity+1),
		"another node": strings.Replace(string(whole), `"n1"`, `"n2"`, 1),
	} {
		if err := os.WriteFile(cfg.Path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Enrol(within(t, 30*time.Second), cfg)
		if err == nil || !strings.Contains(err.Error(), cfg.Path) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), key(whole)[:20]) {
			t.Errorf("%s: the key is in the error", name)
		}
		if now, _ := os.ReadFile(cfg.Path); string(now) != damaged {
			t.Errorf("%s: the file was replaced", name)
		}
	}
	if id, err := LoadIdentity(filepath.Join(t.TempDir(), "none")); id != nil || err != nil {
		t.Error(id, err)
	}
}

func TestKeyAndSecretAreInNothingThatIsPrinted(t *testing.T) {
	p := newPlane(t)
	tok := p.token()
	cfg := config(t, tok)
	p.drop[link.PathEnrol] = 2
	var out bytes.Buffer
	cfg.Log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	id := enrolled(t, p, cfg)
	p.refuse[link.PathEnrol] = link.TokenUsed
	cfg.Path += "2"
	_, err := Enrol(within(t, 30*time.Second), cfg)
	for _, v := range []any{id, *id, cfg, err, struct{ id Identity }{*id}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "id", id, "token", cfg.Token)
	secret := strings.Split(tok.Text(), ".")[2]
	d, err := id.key().Bytes()
	if err != nil {
		t.Fatal(err)
	}
	seed, _ := base64.RawURLEncoding.DecodeString(secret)
	for what, s := range map[string]string{
		"secret": secret, "secret in hex": fmt.Sprintf("%x", seed), "secret in decimal": strings.Trim(fmt.Sprint(seed[:8]), "[]"),
		"key": base64.StdEncoding.EncodeToString(d), "key in hex": fmt.Sprintf("%x", d), "key in decimal": new(big.Int).SetBytes(d).String(),
	} {
		if strings.Contains(out.String(), s) {
			t.Errorf("the %s is printed", what)
		}
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"state":"enrolling","enrolment_id":"00112233445566778899aabbccddeeff","mesh":"m1","key":"AAAA","pins":[],"addresses":["a:1"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if id, err := parseIdentity(b); err == nil && (id.key() == nil || id.Mesh == "") {
			t.Fatal("an identity without key or mesh")
		}
	})
}
