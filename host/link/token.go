package link

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// MaxToken bounds the text of a token, white space included, in bytes.
const MaxToken = 16 << 10

// MaxAddresses is how many addresses of a control plane a token, an answer or
// a message may name.
const MaxAddresses = 16

// TokenPrefix starts every token of the format this program speaks.
const TokenPrefix = "noxt1"

const checkDigits = 6

// A Token lets one machine (or as many as it has uses) enrol in one mesh:
//
//	noxt1.<payload>.<secret>.<check>
//
// payload is base64url of a JSON object with sorted keys and no space, and
// holds what the exported fields hold: it is public. secret is base64url of
// the 32 bytes of an Ed25519 seed. check is the first six hex digits of the
// SHA-256 of everything before the last dot.
//
// Whatever prints a Token (fmt with any verb, slog, encoding/json) shows the
// public part; Text alone gives the secret away.
type Token struct {
	// Addresses are where the control plane is, "host:port".
	Addresses []string
	// ID names the token: 16 hex digits.
	ID string
	// Mesh is the mesh id.
	Mesh string
	// Pins are one or two mesh root keys, as Pin writes them.
	Pins []string
	// Expires is judged by the control plane's clock only; whole seconds, UTC.
	Expires time.Time
	// Name is a name or a pattern ("web-*") the node's name must match, or "".
	Name string

	// A function, because nothing prints what one holds: fmt looks through a
	// pointer even where it cannot call our Format (in an unexported field,
	// with a verb that does not fit).
	seed func() [ed25519.SeedSize]byte
}

// The order of the fields is that of the sorted keys.
type payload struct {
	Addresses []string `json:"addresses"`
	Expires   string   `json:"expires"`
	ID        string   `json:"id"`
	Mesh      string   `json:"mesh"`
	Name      string   `json:"name,omitempty"`
	Pins      []string `json:"pins"`
}

// NewToken makes a token with a new id and a new seed.
func NewToken(mesh string, addresses, pins []string, expires time.Time, name string) (Token, error) {
	var id [8]byte
	var seed [ed25519.SeedSize]byte
	// crypto/rand.Read never fails (Go 1.24).
	_, _ = rand.Read(id[:])
	_, _ = rand.Read(seed[:])
	t := Token{
		Addresses: append([]string(nil), addresses...),
		ID:        hex.EncodeToString(id[:]),
		Mesh:      mesh,
		Pins:      append([]string(nil), pins...),
		Expires:   expires.UTC().Truncate(time.Second),
		Name:      name,
		seed:      func() [ed25519.SeedSize]byte { return seed },
	}
	if problem := t.problem(); problem != "" {
		return Token{}, fmt.Errorf("cannot make a token: %s", problem)
	}
	return t, nil
}

// ParseToken reads a token as a person pasted it: white space around it and
// line breaks within are forgiven, nothing else. Every error is a refusal with
// the code token_malformed and never quotes the text.
func ParseToken(text []byte) (Token, error) {
	if len(text) > MaxToken {
		return Token{}, malformed("it is longer than %d bytes", MaxToken)
	}
	s := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '\ufeff' {
			return -1
		}
		return r
	}, string(text))
	switch version, _, _ := strings.Cut(s, "."); {
	case s == "":
		return Token{}, malformed("there is nothing to read")
	case version == TokenPrefix:
	case anyFormat.MatchString(version):
		return Token{}, malformed("it is of format %q, and this program reads %q", version, TokenPrefix)
	default:
		return Token{}, malformed("it does not start with %q", TokenPrefix+".")
	}
	i := strings.LastIndexByte(s, '.')
	if i < 0 || check(s[:i]) != s[i+1:] {
		return Token{}, malformed("its check digits do not fit: it was cut or mistyped")
	}
	parts := strings.Split(s[:i], ".")
	if len(parts) != 3 {
		return Token{}, malformed("it has %d parts, not 4", len(parts)+1)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(parts[1])
	if err != nil {
		return Token{}, malformed("its payload is not base64url")
	}
	secret, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil || len(secret) != ed25519.SeedSize {
		return Token{}, malformed("its secret is not %d bytes in base64url", ed25519.SeedSize)
	}
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		return Token{}, malformed("its payload is not the JSON it should be")
	}
	expires, err := time.Parse(time.RFC3339, p.Expires)
	if err != nil {
		return Token{}, malformed("its expiry is not a time")
	}
	t := Token{
		Addresses: p.Addresses, ID: p.ID, Mesh: p.Mesh, Pins: p.Pins,
		Expires: expires.UTC(), Name: p.Name,
		seed: func() [ed25519.SeedSize]byte { return [ed25519.SeedSize]byte(secret) },
	}
	if problem := t.problem(); problem != "" {
		return Token{}, malformed("%s", problem)
	}
	// One token, one text: this also refuses unknown and repeated members.
	if !bytes.Equal(t.payload(), raw) {
		return Token{}, malformed("its payload is not in canonical form")
	}
	return t, nil
}

// ReadToken reads one token from r, which is standard input or a token file.
func ReadToken(r io.Reader) (Token, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxToken+1))
	if err != nil {
		return Token{}, fmt.Errorf("cannot read the token: %w", err)
	}
	return ParseToken(text)
}

// Text is the whole token, secret included: for standard output of `token
// create`, and nothing else.
func (t Token) Text() string {
	if t.seed == nil {
		return ""
	}
	seed := t.seed()
	s := t.public() + base64.RawURLEncoding.EncodeToString(seed[:])
	return s + "." + check(s)
}

// PublicKey is what the control plane keeps of the secret.
func (t Token) PublicKey() ed25519.PublicKey {
	if t.seed == nil {
		return nil
	}
	return t.privateKey().Public().(ed25519.PublicKey)
}

func (t Token) privateKey() ed25519.PrivateKey {
	seed := t.seed()
	return ed25519.NewKeyFromSeed(seed[:])
}

// String is the token without its secret.
func (t Token) String() string { return t.public() + "…" }

// Format prints String for every verb: %d or %#v must not show the seed.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue is String, for slog.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText is String, so that JSON holds no secret either.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

func (t Token) public() string {
	return TokenPrefix + "." + base64.RawURLEncoding.EncodeToString(t.payload()) + "."
}

func (t Token) payload() []byte {
	b, err := json.Marshal(payload{
		Addresses: t.Addresses, Expires: t.Expires.UTC().Format(time.RFC3339), ID: t.ID,
		Mesh: t.Mesh, Name: t.Name, Pins: t.Pins,
	})
	if err != nil {
		panic("internal error: a token's payload is strings only: " + err.Error())
	}
	return b
}

func check(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:checkDigits]
}

var (
	anyFormat   = regexp.MustCompile(`^noxt[0-9]{1,4}$`)
	tokenID     = regexp.MustCompile(`^[0-9a-f]{16}$`)
	namePattern = regexp.MustCompile(`^[A-Za-z0-9*?][A-Za-z0-9._*?-]{0,62}$`)
	hostName    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)
)

// problem says what is wrong with the public part, or "".
func (t Token) problem() string {
	switch {
	case !tokenID.MatchString(t.ID):
		return "its id is not 16 hex digits"
	case CheckID(t.Mesh) != nil:
		return "its mesh id is not lower-case letters, digits and hyphens"
	case len(t.Pins) < 1 || len(t.Pins) > 2:
		return "it does not pin one or two mesh roots"
	case t.Name != "" && !namePattern.MatchString(t.Name):
		return "its name pattern is not letters, digits, dots, hyphens, * and ?"
	case t.Expires.Year() < 1970 || t.Expires.Year() > 9999:
		return "its expiry is not a time"
	}
	for _, p := range t.Pins {
		if !validPin(p) {
			return "a pin in it is not a SHA-256 in hex"
		}
	}
	if err := CheckAddresses(t.Addresses); err != nil {
		return err.Error()
	}
	return ""
}

// CheckAddresses says whether these may be the addresses of a control plane:
// one to MaxAddresses times "host:port".
func CheckAddresses(addresses []string) error {
	if len(addresses) < 1 || len(addresses) > MaxAddresses {
		return fmt.Errorf("it does not name 1 to %d addresses", MaxAddresses)
	}
	for _, a := range addresses {
		if err := CheckAddress(a); err != nil {
			return err
		}
	}
	return nil
}

// CheckAddress says whether a is "host:port": a name or an IP address (IPv6 in
// brackets) and a port number.
func CheckAddress(a string) error {
	host, port, err := net.SplitHostPort(a)
	if err != nil {
		return fmt.Errorf("the address %q is not host:port", clip(a))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("the address %q has no port number", clip(a))
	}
	if strings.ContainsAny(host, "%") {
		return fmt.Errorf("the address %q has a zone, which means nothing on another machine", clip(a))
	}
	if _, err := netip.ParseAddr(host); err != nil && !hostName.MatchString(host) {
		return fmt.Errorf("the address %q has no host that can be dialled", clip(a))
	}
	return nil
}

// clip shortens foreign text for an error.
func clip(s string) string { return clipTo(120, s) }

func clipTo(most int, s string) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func malformed(format string, args ...any) error {
	return TokenMalformed.Errorf("cannot read the token: "+format, args...)
}
