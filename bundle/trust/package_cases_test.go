package trust

import (
	"bytes"
	"crypto"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
)

const day = 24 * time.Hour

// A publisher is who signs in the tests, with good keys and bad ones.
type publisher struct {
	now    time.Time
	policy *Policy
	// keyring is what gpg is given; trusted are the primary keys in it that it
	// is told to trust: all.
	keyring []byte
	trusted []string

	author, direct, expired, unbound, unanswered, revoked person
	stranger                                              *forged
}

func newPublisher(t testing.TB, now time.Time) *publisher {
	t.Helper()
	old := now.Add(-100 * day).Truncate(time.Second)
	p := &publisher{
		now:        now.Truncate(time.Second),
		author:     person{primary: forgeKey(1, old), signing: forgeKey(2, old), user: "author"},
		direct:     person{primary: forgeKey(3, old), user: "direct"},
		expired:    person{primary: forgeKey(4, old), life: 50 * day, user: "expired"},
		unbound:    person{primary: forgeKey(5, old), signing: forgeKey(6, old), unbound: true, user: "unbound"},
		unanswered: person{primary: forgeKey(7, old), signing: forgeKey(8, old), unanswered: true, user: "unanswered"},
		revoked:    person{primary: forgeKey(9, old), signing: forgeKey(10, old), user: "revoked"},
		stranger:   forgeKey(11, old),
	}
	// A root cannot name a key whose subkey does not belong to it; it names the
	// primary key, as one that signs by itself.
	alone := func(q person) []byte { return person{primary: q.primary, user: q.user}.certificate() }
	p.policy = rooted(t, []string{p.revoked.primary.id(), p.revoked.signing.id()},
		p.author.certificate(), p.direct.certificate(), p.expired.certificate(), alone(p.unbound), alone(p.unanswered))
	for _, q := range []person{p.author, p.direct, p.expired, p.unbound, p.unanswered} {
		p.keyring = append(p.keyring, q.certificate()...)
		p.trusted = append(p.trusted, q.primary.id())
	}
	// The revocation stands right after the primary key.
	c := p.revoked.certificate()
	primary := len(frame(6, p.revoked.primary.body))
	p.keyring = append(append(append(p.keyring, c[:primary]...), p.revoked.revocation(old.Add(day))...), c[primary:]...)
	p.trusted = append(p.trusted, p.revoked.primary.id())
	return p
}

func (p *publisher) times() Times { return Times{Clock: p.now} }

// An attempt is a signature of the package and what becomes of it: why we
// refuse it (nil: we do not), and what gpg 2.2.40 and pacman 6.0.2 were seen to
// say, the latter as Arch ships its pacman.conf.
type attempt struct {
	name        string
	sig         []byte
	want        error
	gpg, pacman bool
}

const (
	yes = true
	no  = false
	// expiredSince is the one thing that pacman refuses and we do not: we judge
	// a signature by its own date, pacman's gpg a key by the clock.
	expiredSince = "good: key expired since, signed within its life"
)

// attempts are signatures of the package.
func (p *publisher) attempts(t testing.TB, file []byte) []attempt {
	t.Helper()
	signing, then := p.author.signing, p.now.Add(-10*day)
	good := forgery{by: signing, made: then}.sign(file)
	body := good[2:]
	by := func(f forgery) []byte {
		if f.by == nil {
			f.by = signing
		}
		if f.made.IsZero() {
			f.made = then
		}
		return f.sign(file)
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	head := func(b ...byte) []byte { return append(b, body...) }
	var text bytes.Buffer
	w, err := armor.Encode(&text, openpgp.SignatureType, nil)
	if err == nil {
		_, err = w.Write(good)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	wrongID, late := sub(16, p.stranger.fingerprint()[12:]...), p.now.Add(48*time.Hour)
	return []attempt{
		{"good: by the signing subkey", good, nil, yes, yes},
		{"good: by a primary key that signs", by(forgery{by: p.direct.primary}), nil, yes, yes},
		{"good: SHA-256", by(forgery{hash: crypto.SHA256}), nil, yes, yes},
		{"good: header of the new format", head(0xc2, byte(len(body))), nil, yes, yes},
		{"good: an unknown subpacket that is not critical", by(forgery{hashed: sub(100, 1)}), nil, yes, yes},
		{expiredSince, by(forgery{by: p.expired.primary, made: p.now.Add(-90 * day)}), nil, yes, no},
		{"good: dated half a day ahead", by(forgery{made: p.now.Add(12 * time.Hour)}), nil, yes, yes},

		{"no signature file", nil, ErrNoSignature, no, yes},
		{"empty signature file", []byte{}, ErrNoSignature, no, no},
		{"armored", text.Bytes(), ErrArmored, yes, yes},
		{"SHA-1", by(forgery{hash: crypto.SHA1}), ErrHash, yes, yes},
		{"SHA-384", by(forgery{hash: crypto.SHA384}), ErrHash, yes, yes},
		{"two days in the future", by(forgery{made: late}), ErrFuture, yes, yes},
		{"two signatures, one by an unknown key", join(good, by(forgery{by: p.stranger})), ErrSeveral, no, no},
		{"two good signatures", join(good, good), ErrSeveral, yes, yes},
		{"a trailing zero byte", join(good, []byte{0}), ErrTrailing, no, no},
		{"trailing text", join(good, []byte("and more")), ErrTrailing, no, no},
		{"a user id packet after it", join(good, frame(13, []byte("x"))), ErrTrailing, no, no},
		{"a marker packet after it", join(good, frame(10, []byte("PGP"))), ErrTrailing, yes, yes},
		{"a marker packet before it", join(frame(10, []byte("PGP")), good), ErrMalformed, yes, yes},
		{"a private packet after it", join(good, []byte{0xfd, 3, 'a', 'b', 'c'}), ErrTrailing, yes, yes},
		{"a zero byte before it", join([]byte{0}, good), ErrMalformed, no, no},
		{"another file's", forgery{by: signing, made: then}.sign([]byte("another")), ErrBadSignature, no, no},
		{"unknown key", by(forgery{by: p.stranger}), ErrUnknownKey, no, no},
		{"revoked key", by(forgery{by: p.revoked.signing}), ErrRevokedKey, yes, no},
		{"subkey without binding", by(forgery{by: p.unbound.signing}), ErrUnknownKey, no, no},
		{"subkey that does not sign back", by(forgery{by: p.unanswered.signing}), ErrUnknownKey, no, no},
		{"primary key that only certifies", by(forgery{by: p.author.primary}), ErrUnknownKey, no, no},
		{"made before its key", by(forgery{made: p.now.Add(-200 * day)}), ErrOutsideLife, no, no},
		{"made after its key expired", by(forgery{by: p.expired.primary}), ErrOutsideLife, yes, no},
		{"made the second its key expired", by(forgery{by: p.expired.primary, made: p.expired.primary.created.Add(50 * day)}), ErrOutsideLife, yes, no},
		{"version 3", forgery{by: signing, made: then}.v3(file), ErrVersion, yes, yes},
		{"text mode, class 0x01", forgery{by: signing, made: then, class: 1}.sign(asText(file)), ErrClass, yes, yes},
		{"standalone, class 0x02", forgery{by: signing, made: then, class: 2}.sign(nil), ErrClass, no, no},
		{"unknown critical subpacket", by(forgery{hashed: sub(0x80|100, 1)}), ErrCritical, no, no},
		{"unknown critical subpacket that is not signed", by(forgery{unhashed: sub(0x80|100, 1)}), ErrCritical, no, no},
		{"critical notation", by(forgery{hashed: sub(0x80|20, 0, 0, 0, 0, 0, 1, 0, 1, 'a', 'b')}), ErrCritical, no, no},
		{"a subpacket that is not signed", by(forgery{unhashed: sub(100, 1)}), ErrMalformed, yes, yes},
		{"signature that expires", by(forgery{hashed: seconds(3, 1000*day)}), ErrExpires, yes, yes},
		{"no fingerprint of the issuer", by(forgery{bare: true, hashed: at(2, then), unhashed: signing.keyID()}), ErrMalformed, yes, yes},
		{"no key id of the issuer", by(forgery{bare: true, hashed: join(signing.issuer(), at(2, then))}), ErrMalformed, yes, yes},
		{"key id of another key", by(forgery{bare: true, hashed: join(signing.issuer(), at(2, then)), unhashed: wrongID}), ErrMalformed, yes, no},
		{"creation time that is not signed", by(forgery{bare: true, hashed: signing.issuer(), unhashed: join(signing.keyID(), at(2, then))}), ErrMalformed, no, no},
		{"two creation times", by(forgery{hashed: at(2, then)}), ErrMalformed, yes, yes},
		{"indefinite length", head(0x8b), ErrMalformed, no, no},
		{"partial length", join([]byte{0xc2, 0xe0 | 6}, body[:64], []byte{byte(len(body) - 64)}, body[64:]), ErrMalformed, no, no},
		{"length in more bytes than it needs", head(0x89, 0, byte(len(body))), ErrMalformed, yes, yes},
		{"cut short by a byte", good[:len(good)-1], ErrMalformed, no, no},
		{"a byte after the numbers", frame(2, join(body, []byte{0})), ErrMalformed, yes, yes},
		{"no signature at all", []byte("hello, this is text\n"), ErrMalformed, no, no},
	}
}

// asText is the file as a signature of class 0x01 covers it: every line ends in
// CR LF (RFC 4880, 5.2.1), and gpg leaves out NUL bytes at the end of one: what
// such a signature covers is not the file.
func asText(file []byte) []byte {
	var out []byte
	for _, l := range bytes.SplitAfter(file, []byte("\n")) {
		out = append(out, bytes.TrimRight(l, "\x00\r\n")...)
		if bytes.HasSuffix(l, []byte("\n")) {
			out = append(out, '\r', '\n')
		}
	}
	return out
}
