package trust

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// The tags, classes, algorithms and subpackets of OpenPGP that are read here,
// by their numbers in RFC 4880 (sections 4.3, 5.2.1, 9 and 5.2.3.1; the last
// of them, 33, is from RFC 9580).
const (
	tagSignature = 2
	tagPublicKey = 6
	tagUserID    = 13
	tagSubkey    = 14

	classBinary     = 0x00
	classUserID     = 0x13
	classSubkey     = 0x18
	classPrimaryKey = 0x19

	algorithmRSA   = 1
	algorithmEdDSA = 22

	subCreated     = 2
	subExpires     = 3
	subKeyLife     = 9
	subIssuer      = 16
	subFlags       = 27
	subEmbedded    = 32
	subFingerprint = 33

	flagSigns = 0x02
)

// hashes are the digests that count, by their numbers in RFC 4880, 9.4:
// SHA-256 and SHA-512. SHA-1, the one gpg made by default for years, can be
// forged (https://sha-mbles.github.io).
var hashes = []byte{8, 10}

// onlyKeys are subpackets that say something of a key, and that OpenPGP
// programs mark critical: preferences (11, 21, 22, 25) besides those above.
var onlyKeys = []byte{subKeyLife, 11, 21, 22, 25, subFlags, subEmbedded}

// nextPacket splits the first packet off b. It must be of definite length,
// written in the shortest way of its format (section 4.2), so that one packet
// has not many spellings.
func nextPacket(b []byte) (tag byte, body, rest []byte, err error) {
	if len(b) < 2 || b[0]&0x80 == 0 {
		return 0, nil, nil, errors.New("it is no OpenPGP packet")
	}
	var n, head int
	shortest := true
	if b[0]&0x40 == 0 { // old format, as gpg writes
		tag = b[0] >> 2 & 0x0f
		switch b[0] & 3 {
		case 0:
			n, head = int(b[1]), 2
		case 1:
			if len(b) >= 3 {
				n, head = int(binary.BigEndian.Uint16(b[1:])), 3
			}
			shortest = n > 0xff
		default: // four octets hold more than is ever read; 3 is indefinite
			return 0, nil, nil, errors.New("its length is indefinite or too long")
		}
	} else {
		tag = b[0] & 0x3f
		switch {
		case b[1] < 192:
			n, head = int(b[1]), 2
		case b[1] < 224:
			if len(b) >= 3 {
				n, head = int(b[1]-192)<<8+int(b[2])+192, 3
			}
		default:
			return 0, nil, nil, errors.New("its length is partial or too long")
		}
	}
	if head == 0 || n > len(b)-head {
		return 0, nil, nil, errors.New("its packet is cut short")
	}
	if !shortest {
		return 0, nil, nil, errors.New("its length is not written in the shortest way")
	}
	return tag, b[head : head+n], b[head+n:], nil
}

// appendPacket frames a body as a packet of the new format.
func appendPacket(to []byte, tag byte, body []byte) []byte {
	to = append(to, 0xc0|tag)
	if n := len(body); n < 192 {
		to = append(to, byte(n))
	} else {
		to = append(to, byte((n-192)>>8)+192, byte(n-192))
	}
	return append(to, body...)
}

// A pgpSignature is a v4 signature packet that was read, and not yet believed.
type pgpSignature struct {
	class, algorithm byte
	made             time.Time
	// issuer is the fingerprint of the key that says it signed.
	issuer string
	// keyLife is how long a key lives from its creation; 0 is for ever.
	keyLife time.Duration
	flags   byte
	// embedded is the body of the signature a subkey makes in turn.
	embedded []byte
	tag      [2]byte
}

// parsePGPSignature reads the body of a signature packet (section 5.2.3) to its
// last byte. known are the critical subpackets that mean something here
// besides those any signature has.
func parsePGPSignature(b []byte, class byte, known []byte) (*pgpSignature, error) {
	if len(b) == 0 || b[0] != 4 {
		return nil, ErrVersion
	}
	if len(b) < 6 {
		return nil, fmt.Errorf("%w: it is cut short", ErrMalformed)
	}
	s := &pgpSignature{class: b[1], algorithm: b[2]}
	if s.class != class {
		return nil, fmt.Errorf("%w: it has class 0x%02x, not 0x%02x", ErrClass, s.class, class)
	}
	if !slices.Contains(hashes, b[3]) {
		return nil, fmt.Errorf("%w: number %d, not SHA-256 or SHA-512", ErrHash, b[3])
	}
	seen := map[byte]bool{}
	b = b[4:]
	for _, hashed := range []bool{true, false} {
		if len(b) < 2 || int(binary.BigEndian.Uint16(b)) > len(b)-2 {
			return nil, fmt.Errorf("%w: it is cut short", ErrMalformed)
		}
		area := b[2 : 2+int(binary.BigEndian.Uint16(b))]
		b = b[2+len(area):]
		for len(area) > 0 {
			var kind byte
			var value []byte
			var err error
			if kind, value, area, err = nextSubpacket(area); err != nil {
				return nil, err
			}
			if err := s.take(kind, value, hashed, seen, known); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case !seen[subCreated]:
		return nil, fmt.Errorf("%w: it does not say when it was made", ErrMalformed)
	case !seen[subIssuer] || !seen[subFingerprint]:
		return nil, fmt.Errorf("%w: it does not name its key by id and by fingerprint", ErrMalformed)
	case len(b) < 2:
		return nil, fmt.Errorf("%w: it is cut short", ErrMalformed)
	}
	s.tag = [2]byte(b)
	return s, checkNumbers(b[2:], s.algorithm)
}

// nextSubpacket splits the first subpacket off b (section 5.2.3.1); kind has
// the critical bit.
func nextSubpacket(b []byte) (kind byte, value, rest []byte, err error) {
	n, head := int(b[0]), 1
	switch {
	case n == 255:
		return 0, nil, nil, fmt.Errorf("%w: a subpacket is too long", ErrMalformed)
	case n >= 192:
		if len(b) < 2 {
			return 0, nil, nil, fmt.Errorf("%w: a subpacket is cut short", ErrMalformed)
		}
		n, head = (n-192)<<8+int(b[1])+192, 2
	}
	if n == 0 || n > len(b)-head {
		return 0, nil, nil, fmt.Errorf("%w: a subpacket is empty or cut short", ErrMalformed)
	}
	return b[head], b[head+1 : head+n], b[head+n:], nil
}

// take takes in one subpacket. Only what names the issuer counts outside of the
// hashed area, and must say the same wherever it stands: anybody can write
// there.
func (s *pgpSignature) take(kind byte, value []byte, hashed bool, seen map[byte]bool, known []byte) error {
	critical := kind&0x80 != 0
	kind &= 0x7f
	mine := []byte{subCreated, subExpires, subIssuer, subFingerprint}
	if !slices.Contains(mine, kind) && !slices.Contains(known, kind) {
		switch {
		case critical:
			return fmt.Errorf("%w: number %d", ErrCritical, kind)
		case !hashed:
			return fmt.Errorf("%w: subpacket %d is not signed", ErrMalformed, kind)
		}
		return nil
	}
	if !hashed && (critical || kind != subIssuer && kind != subFingerprint && kind != subEmbedded) {
		return fmt.Errorf("%w: subpacket %d is not signed", ErrMalformed, kind)
	}
	if seen[kind] {
		return fmt.Errorf("%w: subpacket %d is there twice", ErrMalformed, kind)
	}
	seen[kind] = true
	size := map[byte]int{subCreated: 4, subExpires: 4, subKeyLife: 4, subIssuer: 8, subFingerprint: 21}
	if want, ok := size[kind]; ok && len(value) != want {
		return fmt.Errorf("%w: subpacket %d has %d bytes", ErrMalformed, kind, len(value))
	}
	switch kind {
	case subCreated:
		s.made = time.Unix(int64(binary.BigEndian.Uint32(value)), 0).UTC()
	case subExpires:
		// Whether it has expired is a matter of clocks, which decide nothing.
		return ErrExpires
	case subKeyLife:
		s.keyLife = time.Duration(binary.BigEndian.Uint32(value)) * time.Second
	case subFlags:
		if len(value) > 0 {
			s.flags = value[0]
		}
	case subEmbedded:
		s.embedded = value
	case subFingerprint:
		if value[0] != 4 {
			return fmt.Errorf("%w: its key is of version %d, not 4", ErrMalformed, value[0])
		}
		return s.name(hex.EncodeToString(value[1:]))
	case subIssuer:
		return s.name(hex.EncodeToString(value))
	}
	return nil
}

// name takes in the key id or the fingerprint of the issuer; the one is the end
// of the other.
func (s *pgpSignature) name(id string) error {
	long, short := s.issuer, id
	if len(long) < len(short) {
		long, short = short, long
	}
	if short != "" && long[len(long)-len(short):] != short {
		return fmt.Errorf("%w: it names two keys", ErrMalformed)
	}
	s.issuer = long
	return nil
}

// checkNumbers reads the numbers of a signature or a key (section 3.2): as many
// as the algorithm has, each written in the one way there is, and nothing
// after.
func checkNumbers(b []byte, algorithm byte) error {
	count, most := 2, 256
	switch algorithm {
	case algorithmEdDSA:
	case algorithmRSA:
		count, most = 1, rsaBits
	default:
		return fmt.Errorf("%w: algorithm %d is not Ed25519 (22) or RSA (1)", ErrMalformed, algorithm)
	}
	for range count {
		n, rest, err := nextNumber(b)
		if err != nil {
			return err
		}
		if n > most {
			return fmt.Errorf("%w: a number has %d bits", ErrMalformed, n)
		}
		b = rest
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes follow its numbers", ErrMalformed, len(b))
	}
	return nil
}

func nextNumber(b []byte) (size int, rest []byte, err error) {
	if len(b) < 3 {
		return 0, nil, fmt.Errorf("%w: a number is cut short", ErrMalformed)
	}
	size = int(binary.BigEndian.Uint16(b))
	n := (size + 7) / 8
	if n == 0 || n > len(b)-2 || size != 8*(n-1)+bits.Len8(b[2]) {
		return 0, nil, fmt.Errorf("%w: a number is not written as it must be", ErrMalformed)
	}
	return size, b[2+n:], nil
}

// fingerprint is that of a v4 key by the body of its packet (section 12.2). It
// is a SHA-1: good enough to find a key by, as the key is written out in the
// root, and never what a signature stands on.
func fingerprint(body []byte) string {
	h := sha1.New()
	h.Write([]byte{0x99, byte(len(body) >> 8), byte(len(body))})
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}
