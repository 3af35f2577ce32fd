package trust

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

const (
	// maxCertificate bounds a package key, in bytes: one of RSA has 4 KiB.
	maxCertificate = 8 << 10
	// maxSubkeys bounds its signing subkeys.
	maxSubkeys = 4
	rsaBits    = 4096
)

// ed25519Key is what every EdDSA key has before its 32 bytes: the length and
// the OID of Ed25519, then a number of 263 bits that begins with 0x40 (RFC
// 9580, 5.5.5.5, the "legacy" algorithm every gpg since 2.1 reads).
var ed25519Key = []byte{9, 0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01, 0x01, 0x07, 0x40}

// A certificate is an OpenPGP public key: one primary key, one user id and its
// signature, and signing subkeys with one binding each. Every signature in it
// was checked when it was read.
type certificate struct {
	// keys are the primary key and the subkeys after it.
	keys []pgpKey
	// raw is the packets, each in the shortest new format.
	raw []byte
}

type pgpKey struct {
	public      *packet.PublicKey
	fingerprint string
	created     time.Time
	// expires is when it stops to sign; zero is never.
	expires time.Time
	signs   bool
}

// lives reports whether the key is alive at t; at its end it is dead, as gpg
// has it.
func (k pgpKey) lives(t time.Time) bool {
	return !t.Before(k.created) && (k.expires.IsZero() || t.Before(k.expires))
}

// NewPackageKey describes an OpenPGP public key, binary, for a root: v4, Ed25519
// (algorithm 22) or RSA of 4096 bits, with one user id and signing subkeys only.
// Its scope is ScopePackage, which no other key can have.
func NewPackageKey(keyring []byte) (Key, error) {
	c, err := parseCertificate(keyring)
	if err != nil {
		return Key{}, fmt.Errorf("cannot use the OpenPGP key: %w", err)
	}
	return Key{
		ID:      c.keys[0].fingerprint,
		OpenPGP: base64.StdEncoding.EncodeToString(c.raw),
		Scope:   []Scope{ScopePackage},
	}, nil
}

// Fingerprints are the ids that name the key when it is revoked: of a P-256 key
// its own; of an OpenPGP key that of the primary key first, then those of its
// subkeys, which are what signatures name.
func (k Key) Fingerprints() ([]string, error) {
	if k.OpenPGP == "" {
		return []string{k.ID}, nil
	}
	c, err := k.certificate()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, key := range c.keys {
		ids = append(ids, key.fingerprint)
	}
	return ids, nil
}

// Keyring is the OpenPGP key as a binary keyring; nil for another key.
func (k Key) Keyring() ([]byte, error) {
	if k.OpenPGP == "" {
		return nil, nil
	}
	c, err := k.certificate()
	if err != nil {
		return nil, err
	}
	return c.raw, nil
}

func (k Key) certificate() (*certificate, error) {
	b, err := strictBase64.DecodeString(k.OpenPGP)
	if err != nil {
		return nil, errors.New("its OpenPGP key is not base64")
	}
	c, err := parseCertificate(b)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(c.raw, b) {
		return nil, errors.New("its OpenPGP key is not canonical")
	}
	return c, nil
}

func parseCertificate(b []byte) (*certificate, error) {
	if len(b) > maxCertificate {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(b), maxCertificate)
	}
	c := &certificate{}
	primary, b, err := c.key(b, tagPublicKey)
	if err != nil {
		return nil, err
	}
	user, b, err := c.next(b, tagUserID)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(user) || len(user) > 256 || bytes.ContainsFunc(user, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return nil, errors.New("its user id is not plain text")
	}
	self, sig, b, err := c.signature(b, classUserID, &primary)
	if err != nil {
		return nil, err
	}
	if err := primary.public.VerifyUserIdSignature(string(user), primary.public, sig); err != nil {
		return nil, errors.New("its user id is not signed by it")
	}
	primary.bind(self)
	c.keys = append(c.keys, primary)
	for len(b) > 0 {
		var sub pgpKey
		if sub, b, err = c.key(b, tagSubkey); err != nil {
			return nil, err
		}
		if self, sig, b, err = c.signature(b, classSubkey, &primary); err != nil {
			return nil, err
		}
		if sub.bind(self); !sub.signs {
			return nil, fmt.Errorf("its subkey %s is not for signing", sub.fingerprint)
		}
		back, err := parsePGPSignature(self.embedded, classPrimaryKey, nil)
		if err != nil || back.issuer != sub.fingerprint {
			return nil, fmt.Errorf("its subkey %s does not sign back", sub.fingerprint)
		}
		// That checks the signature in both directions.
		if err := primary.public.VerifyKeySignature(sub.public, sig); err != nil {
			return nil, fmt.Errorf("its subkey %s is not bound to it", sub.fingerprint)
		}
		c.keys = append(c.keys, sub)
		if len(c.keys) > 1+maxSubkeys {
			return nil, fmt.Errorf("it has more than %d subkeys", maxSubkeys)
		}
	}
	if !slices.ContainsFunc(c.keys, func(k pgpKey) bool { return k.signs }) {
		return nil, errors.New("it has no key that signs")
	}
	return c, nil
}

// next takes the next packet, which must have the tag.
func (c *certificate) next(b []byte, tag byte) (body, rest []byte, err error) {
	got, body, rest, err := nextPacket(b)
	if err != nil {
		return nil, nil, err
	}
	if got != tag {
		return nil, nil, fmt.Errorf("packet %d stands where one of tag %d belongs", got, tag)
	}
	c.raw = appendPacket(c.raw, tag, body)
	return body, rest, nil
}

func (c *certificate) key(b []byte, tag byte) (pgpKey, []byte, error) {
	body, rest, err := c.next(b, tag)
	if err != nil {
		return pgpKey{}, nil, err
	}
	if len(body) < 6 || body[0] != 4 {
		return pgpKey{}, nil, errors.New("it is not of version 4")
	}
	switch numbers := body[6:]; body[5] {
	case algorithmEdDSA:
		if len(numbers) != len(ed25519Key)+32 || !bytes.HasPrefix(numbers, ed25519Key) {
			return pgpKey{}, nil, errors.New("it is not on the curve Ed25519")
		}
	case algorithmRSA:
		n, after, err := nextNumber(numbers)
		if err != nil {
			return pgpKey{}, nil, err
		}
		if n != rsaBits {
			return pgpKey{}, nil, fmt.Errorf("it is RSA of %d bits, not %d", n, rsaBits)
		}
		if e, after, err := nextNumber(after); err != nil || e > 32 || len(after) > 0 {
			return pgpKey{}, nil, errors.New("its RSA exponent is too large")
		}
	default:
		return pgpKey{}, nil, fmt.Errorf("its algorithm %d is not Ed25519 (22) or RSA (1)", body[5])
	}
	p, err := packet.Read(bytes.NewReader(appendPacket(nil, tag, body)))
	public, ok := p.(*packet.PublicKey)
	if err != nil || !ok {
		return pgpKey{}, nil, errors.New("it holds no public key")
	}
	return pgpKey{
		public:      public,
		fingerprint: fingerprint(body),
		created:     time.Unix(int64(binary.BigEndian.Uint32(body[1:])), 0).UTC(),
	}, rest, nil
}

// signature takes the next packet as a signature of by's about the packets
// before it.
func (c *certificate) signature(b []byte, class byte, by *pgpKey) (*pgpSignature, *packet.Signature, []byte, error) {
	body, rest, err := c.next(b, tagSignature)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := parsePGPSignature(body, class, onlyKeys)
	if err != nil {
		return nil, nil, nil, err
	}
	if s.issuer != by.fingerprint {
		return nil, nil, nil, errors.New("a signature in it is not its own")
	}
	sig, err := readSignature(body)
	return s, sig, rest, err
}

// readSignature has go-crypto read what was read here already.
func readSignature(body []byte) (*packet.Signature, error) {
	p, err := packet.Read(bytes.NewReader(appendPacket(nil, tagSignature, body)))
	s, ok := p.(*packet.Signature)
	if err != nil || !ok {
		return nil, fmt.Errorf("%w: it is not read", ErrMalformed)
	}
	return s, nil
}

// bind takes over what the key's own signature says of it.
func (k *pgpKey) bind(s *pgpSignature) {
	k.signs = s.flags&flagSigns != 0
	if s.keyLife > 0 {
		k.expires = k.created.Add(s.keyLife)
	}
}

// isFingerprint reports whether s is a v4 fingerprint as roots spell it.
func isFingerprint(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 20 && hex.EncodeToString(b) == s
}
