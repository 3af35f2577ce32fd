package link_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Made by another program (Python's json, base64 and hashlib). Seed and public
// key are test 1 of RFC 8032, 7.1.
const (
	golden     = "noxt1.eyJhZGRyZXNzZXMiOlsiMTAuMC4wLjE6NzQ0MyIsIltmZDAwOjoxXTo3NDQzIiwibWVzaC5leGFtcGxlOjQ0MyJdLCJleHBpcmVzIjoiMjAyNi0xMi0wMVQxMDowMDowMFoiLCJpZCI6IjAwMTEyMjMzNDQ1NTY2YWEiLCJtZXNoIjoibTEiLCJuYW1lIjoid2ViLSoiLCJwaW5zIjpbImFiYWJhYmFiYWJhYmFiYWJhYmFiYWJhYmFiYWJhYmFiYWJhYmFiYWJhYmFiYWJhYmFiYWJhYmFiYWJhYmFiYWIiXX0.nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A.8dce3e"
	goldenSeed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
	goldenKey  = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
)

var pinAB = strings.Repeat("ab", 32)

func refusedAsMalformed(t *testing.T, err error) {
	t.Helper()
	if fault.KindOf(err) != fault.Refused || link.CodeOf(err) != link.TokenMalformed || fault.RemedyOf(err) == "" {
		t.Fatalf("got %v (kind %d, code %q), want a refusal with the code token_malformed and a remedy",
			err, fault.KindOf(err), link.CodeOf(err))
	}
	if s := err.Error(); strings.ContainsAny(s, "\n\r") || len(s) > 300 {
		t.Fatalf("not one line: %q", s)
	}
}

func TestTokenIsReadAsAnotherProgramWroteIt(t *testing.T) {
	tok, err := link.ParseToken([]byte(golden))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(tok.Addresses); got != "[10.0.0.1:7443 [fd00::1]:7443 mesh.example:443]" {
		t.Error("addresses", got)
	}
	if tok.ID != "00112233445566aa" || tok.Mesh != "m1" || tok.Name != "web-*" || len(tok.Pins) != 1 || tok.Pins[0] != pinAB {
		t.Errorf("got %q %q %q %q", tok.ID, tok.Mesh, tok.Name, tok.Pins)
	}
	if want := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC); !tok.Expires.Equal(want) {
		t.Error("expires", tok.Expires)
	}
	if got := hex.EncodeToString(tok.PublicKey()); got != goldenKey {
		t.Error("public key", got)
	}
	if tok.Text() != golden {
		t.Error("text", tok.Text())
	}
}

func TestNewTokenIsReadBack(t *testing.T) {
	expires := time.Date(2030, 1, 2, 3, 4, 5, 678, time.FixedZone("", 3600))
	a, err := link.NewToken("m1", []string{"10.0.0.1:7443"}, []string{pinAB}, expires, "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := link.ParseToken([]byte(a.Text()))
	if err != nil {
		t.Fatal(err)
	}
	if !a.PublicKey().Equal(b.PublicKey()) || a.ID != b.ID || b.Expires.Format(time.RFC3339) != "2030-01-02T02:04:05Z" {
		t.Errorf("got %v from %v", b, a)
	}
	c, _ := link.NewToken("m1", []string{"10.0.0.1:7443"}, []string{pinAB}, expires, "")
	if c.ID == a.ID || c.PublicKey().Equal(a.PublicKey()) {
		t.Error("two tokens are one")
	}
	if _, err := link.NewToken("m1", nil, []string{pinAB}, expires, ""); err == nil {
		t.Error("a token without an address was made")
	}
}

func TestWhiteSpaceAndWrapsAreForgiven(t *testing.T) {
	var wrapped strings.Builder
	for i, r := range golden {
		if i%20 == 0 {
			wrapped.WriteString("\r\n\t ")
		}
		wrapped.WriteRune(r)
	}
	for _, text := range []string{golden + "\n", "  " + golden + " \r\n", "\ufeff" + golden, wrapped.String()} {
		if _, err := link.ParseToken([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTokenMangledAtAnyCharacterIsRefused(t *testing.T) {
	for i := range golden {
		for _, mangled := range []string{
			golden[:i],
			golden[:i] + golden[i+1:],
			golden[:i] + "x" + golden[i:],
			golden[:i] + string(golden[i]^1) + golden[i+1:],
			golden[:i] + string(golden[i]^0x20) + golden[i+1:],
		} {
			if strings.Join(strings.Fields(mangled), "") == golden {
				continue
			}
			_, err := link.ParseToken([]byte(mangled))
			refusedAsMalformed(t, err)
		}
	}
}

// seal makes a token text of any payload and secret, with right check digits.
func seal(payload string, secret []byte) string {
	s := "noxt1." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + "." + base64.RawURLEncoding.EncodeToString(secret)
	sum := sha256.Sum256([]byte(s))
	return s + "." + hex.EncodeToString(sum[:])[:6]
}

func TestE03EachMalformationHasItsSentence(t *testing.T) {
	seed, _ := hex.DecodeString(goldenSeed)
	good := `{"addresses":["a:1"],"expires":"2026-12-01T10:00:00Z","id":"00112233445566aa","mesh":"m1","pins":["` + pinAB + `"]}`
	if _, err := link.ParseToken([]byte(seal(good, seed))); err != nil {
		t.Fatal(err)
	}
	with := func(old, new string) string { return seal(strings.Replace(good, old, new, 1), seed) }
	for name, c := range map[string]struct{ text, want string }{
		"empty":          {" \n", "nothing to read"},
		"other text":     {"hello world", "does not start with"},
		"another format": {"noxt2.a.b.c", `format "noxt2"`},
		"too long":       {strings.Repeat("a", link.MaxToken+1), "longer than"},
		"cut":            {golden[:len(golden)-9], "check digits"},
		"three parts": {func() string {
			s := sha256.Sum256([]byte("noxt1.abc"))
			return "noxt1.abc." + hex.EncodeToString(s[:])[:6]
		}(), "parts"},
		"short secret":      {seal(good, seed[1:]), "secret"},
		"not JSON":          {seal("{", seed), "JSON"},
		"unknown member":    {with(`"mesh"`, `"maker":"x","mesh"`), "canonical"},
		"repeated member":   {with(`"mesh":"m1"`, `"mesh":"m0","mesh":"m1"`), "canonical"},
		"space":             {with(`,`, `, `), "canonical"},
		"no address":        {with(`["a:1"]`, `[]`), "addresses"},
		"address, no port":  {with(`a:1`, `a`), "host:port"},
		"address, port 0":   {with(`a:1`, `a:0`), "port"},
		"address, port 1e5": {with(`a:1`, `a:100000`), "port"},
		"address, a path":   {with(`a:1`, `a/b:1`), "host"},
		"address, no host":  {with(`a:1`, `:1`), "host"},
		"address, a zone":   {with(`a:1`, `[fe80::1%eth0]:1`), "zone"},
		"expiry":            {with(`2026-12-01T10:00:00Z`, `tomorrow`), "expiry"},
		"id":                {with(`00112233445566aa`, `../../etc/passwd`), "id"},
		"mesh":              {with(`"m1"`, `"M/1"`), "mesh id"},
		"pin":               {with(pinAB, `AB`), "pin"},
		"no pin":            {with(`["`+pinAB+`"]`, `[]`), "pin"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := link.ParseToken([]byte(c.text))
			refusedAsMalformed(t, err)
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want it to say %q", err, c.want)
			}
		})
	}
}

func TestSecretIsInNothingThatIsPrinted(t *testing.T) {
	tok, err := link.ParseToken([]byte(golden))
	if err != nil {
		t.Fatal(err)
	}
	type holder struct{ Token link.Token }
	type hidden struct{ token link.Token }
	var out bytes.Buffer
	for _, v := range []any{tok, &tok, holder{tok}, &holder{tok}, hidden{tok}, &hidden{tok}, []link.Token{tok}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%b", "%t"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("m", "token", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "token", v)
		if err := json.NewEncoder(&out).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	for i := range golden {
		if _, err := link.ParseToken([]byte(golden[:i])); err != nil {
			fmt.Fprintf(&out, "%v %+v %#v\n", err, err, err)
		}
	}
	seed, _ := hex.DecodeString(goldenSeed)
	for _, secret := range []string{
		base64.RawURLEncoding.EncodeToString(seed), base64.StdEncoding.EncodeToString(seed),
		goldenSeed, strings.ToUpper(goldenSeed), fmt.Sprint(seed[:8])[1:20], fmt.Sprintf("%#v", seed[:4])[7:24], string(seed[:8]),
	} {
		if bytes.Contains(out.Bytes(), []byte(secret)) {
			t.Errorf("the secret shows as %q", secret)
		}
	}
	if !strings.HasPrefix(tok.String(), golden[:100]) {
		t.Error("the public part does not show:", tok)
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add([]byte(golden))
	f.Add([]byte("noxt1..."))
	f.Add([]byte(seal("{}", make([]byte, 32))))
	f.Fuzz(func(t *testing.T, text []byte) {
		tok, err := link.ParseToken(text)
		if err != nil {
			refusedAsMalformed(t, err)
			return
		}
		again, err := link.ParseToken([]byte(tok.Text()))
		if err != nil || again.Text() != tok.Text() {
			t.Fatalf("%q is read once and not twice: %v", text, err)
		}
	})
}
