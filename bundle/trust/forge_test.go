package trust

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	_ "crypto/sha256"
	_ "crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"testing"
	"time"
)

// This file writes OpenPGP by hand from RFC 4880, good and bad, with nothing of
// the code under test and nothing of go-crypto; gpg says in the oracle test
// whether it is right.

// A forged is a key: the body of its packet, and what signs with it.
type forged struct {
	secret  ed25519.PrivateKey
	body    []byte
	created time.Time
}

func forgeKey(seed byte, created time.Time) *forged {
	secret := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	b := binary.BigEndian.AppendUint32([]byte{4}, uint32(created.Unix()))
	b = append(b, 22, 9, 0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01, 0x01, 0x07, 0x40)
	return &forged{secret, append(b, secret.Public().(ed25519.PublicKey)...), created}
}

// hashed is the key as it goes into the hash of a signature about it.
func (k *forged) hashed() []byte {
	return append([]byte{0x99, byte(len(k.body) >> 8), byte(len(k.body))}, k.body...)
}

func (k *forged) fingerprint() []byte {
	sum := sha1.Sum(k.hashed())
	return sum[:]
}

func (k *forged) id() string { return hex.EncodeToString(k.fingerprint()) }

func (k *forged) issuer() []byte { return sub(33, append([]byte{4}, k.fingerprint()...)...) }

func (k *forged) keyID() []byte { return sub(16, k.fingerprint()[12:]...) }

// sub is a subpacket.
func sub(kind byte, value ...byte) []byte {
	n := len(value) + 1
	if n < 192 {
		return append([]byte{byte(n), kind}, value...)
	}
	return append([]byte{byte((n-192)>>8) + 192, byte(n - 192), kind}, value...)
}

func at(kind byte, t time.Time) []byte {
	return sub(kind, binary.BigEndian.AppendUint32(nil, uint32(t.Unix()))...)
}

func seconds(kind byte, d time.Duration) []byte {
	return sub(kind, binary.BigEndian.AppendUint32(nil, uint32(d/time.Second))...)
}

// frame makes a packet with the old format's header, as gpg does.
func frame(tag byte, body []byte) []byte {
	if len(body) < 256 {
		return append([]byte{0x80 | tag<<2, byte(len(body))}, body...)
	}
	return append([]byte{0x80 | tag<<2 | 1, byte(len(body) >> 8), byte(len(body))}, body...)
}

func number(b []byte) []byte {
	b = bytes.TrimLeft(b, "\x00")
	if len(b) == 0 {
		return []byte{0, 0}
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(8*(len(b)-1)+bits.Len8(b[0]))), b...)
}

// A forgery is a signature to be made; its zero value with a key, a time and a
// text is a good one of a package.
type forgery struct {
	by    *forged
	made  time.Time
	class byte
	hash  crypto.Hash
	// hashed and unhashed are subpackets besides creation and issuers.
	hashed, unhashed []byte
	// bare leaves out the subpackets that every signature has.
	bare bool
}

var hashNumber = map[crypto.Hash]byte{crypto.SHA1: 2, crypto.SHA256: 8, crypto.SHA384: 9, crypto.SHA512: 10}

// body signs text and returns the body of the packet.
func (f forgery) body(text []byte) []byte {
	if f.hash == 0 {
		f.hash = crypto.SHA512
	}
	hashed, unhashed := f.hashed, f.unhashed
	if !f.bare {
		hashed = append(append(f.by.issuer(), at(2, f.made)...), hashed...)
		unhashed = append(f.by.keyID(), unhashed...)
	}
	b := []byte{4, f.class, 22, hashNumber[f.hash]}
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(hashed))), hashed...)
	h := f.hash.New()
	h.Write(text)
	h.Write(b)
	h.Write(binary.BigEndian.AppendUint32([]byte{4, 0xff}, uint32(len(b))))
	sum := h.Sum(nil)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(unhashed))), unhashed...)
	b = append(b, sum[:2]...)
	sig := ed25519.Sign(f.by.secret, sum)
	return append(append(b, number(sig[:32])...), number(sig[32:])...)
}

func (f forgery) sign(text []byte) []byte { return frame(2, f.body(text)) }

// v3 signs as PGP 2 did (RFC 4880, 5.2.2).
func (f forgery) v3(text []byte) []byte {
	h := crypto.SHA256.New()
	made := binary.BigEndian.AppendUint32([]byte{f.class}, uint32(f.made.Unix()))
	h.Write(text)
	h.Write(made)
	sum := h.Sum(nil)
	b := append(append([]byte{3, 5}, made...), f.by.fingerprint()[12:]...)
	b = append(b, 22, 8, sum[0], sum[1])
	sig := ed25519.Sign(f.by.secret, sum)
	return frame(2, append(append(b, number(sig[:32])...), number(sig[32:])...))
}

// A person is a certificate to be made.
type person struct {
	primary, signing *forged
	// life is that of the primary key, subLife that of the subkey; 0 is for ever.
	life, subLife time.Duration
	// unbound leaves out the binding of the subkey, unanswered only the
	// subkey's own word that it belongs to the primary key.
	unbound, unanswered bool
	user                string
	hash                crypto.Hash
}

func (p person) certificate() []byte {
	k := p.primary
	flags := byte(1)
	if p.signing == nil {
		flags = 3
	}
	self := forgery{by: k, made: k.created, class: 0x13, hash: p.hash, hashed: sub(27, flags)}
	if p.life > 0 {
		self.hashed = append(self.hashed, seconds(9, p.life)...)
	}
	user := append(binary.BigEndian.AppendUint32([]byte{0xb4}, uint32(len(p.user))), p.user...)
	out := append(frame(6, k.body), frame(13, []byte(p.user))...)
	out = append(out, self.sign(append(k.hashed(), user...))...)
	if p.signing == nil {
		return out
	}
	both := append(k.hashed(), p.signing.hashed()...)
	out = append(out, frame(14, p.signing.body)...)
	if p.unbound {
		return out
	}
	binding := forgery{by: k, made: p.signing.created, class: 0x18, hash: p.hash, hashed: sub(27, 2)}
	if p.subLife > 0 {
		binding.hashed = append(binding.hashed, seconds(9, p.subLife)...)
	}
	if !p.unanswered {
		back := forgery{by: p.signing, made: p.signing.created, class: 0x19, hash: p.hash}
		binding.unhashed = sub(32, back.body(both)...)
	}
	return append(out, binding.sign(both)...)
}

// revocation is the signature by which the primary key revokes itself.
func (p person) revocation(made time.Time) []byte {
	return forgery{by: p.primary, made: made, class: 0x20, hashed: sub(29, 0)}.sign(p.primary.hashed())
}

// rooted is a policy whose root names the certificates and revokes the ids.
func rooted(t testing.TB, revoked []string, certificates ...[]byte) *Policy {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	root, err := NewKey(key.Public(), ScopeRoot)
	if err != nil {
		t.Fatal(err)
	}
	keys := []Key{root}
	for _, c := range certificates {
		k, err := NewPackageKey(c)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	file, err := SignRoot(NewRoot(nil, keys, revoked...), key)
	if err != nil {
		t.Fatal(err)
	}
	p, err := FromRoot(file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
