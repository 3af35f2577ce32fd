package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

const (
	// PackageSignatureSuffix ends the name of the file that holds a package's
	// signature.
	PackageSignatureSuffix = ".sig"
	// MaxPackageSignature bounds it, in bytes: one of RSA 4096 has under 1 KiB.
	MaxPackageSignature = 4 << 10
	// early is how long after the latest known time a signature may be dated.
	early = 24 * time.Hour
)

// Why the signature of a package does not count, besides ErrNoSignature,
// ErrUnknownKey, ErrRevokedKey and ErrBadSignature.
var (
	ErrArmored     = errors.New("armored signature")
	ErrMalformed   = errors.New("malformed signature")
	ErrSeveral     = errors.New("more than one signature")
	ErrTrailing    = errors.New("trailing bytes after the signature")
	ErrVersion     = errors.New("signature that is not of version 4")
	ErrClass       = errors.New("signature of the wrong class")
	ErrHash        = errors.New("signature over a hash that does not count")
	ErrCritical    = errors.New("signature with an unknown critical subpacket")
	ErrExpires     = errors.New("signature that expires")
	ErrOutsideLife = errors.New("signature made outside the life of its key")
	ErrFuture      = errors.New("signature from the future")
)

// Times are the moments known to have passed, by which a signature from the
// future is told; what is not known is zero. A machine without a battery lives
// in 1970 by its clock, and the other two say that it is wrong.
type Times struct {
	// Clock is the machine's clock.
	Clock time.Time
	// Build is when the running program was built.
	Build time.Time
	// Bundle is `created` of the newest bundle that was accepted.
	Bundle time.Time
}

// VerifyPackage returns who signed the package in r by the content of its .sig
// file. It takes less than pacman does: exactly one binary OpenPGP v4 signature
// of class 0x00 over SHA-256 or SHA-512, without armor and with nothing after
// it, by a key that the root in force names for packages or by a signing subkey
// of it, made while both lived and not more than a day after the latest of t.
// Expiry is judged by the signature's own date, so what was good stays good.
//
// The error is a fault of kind Refused with one of the reasons in its chain,
// or that of r. The package is read to its end only when all but the signature
// itself is right; it is the caller's to use the same bytes.
func (p *Policy) VerifyPackage(r io.Reader, sig []byte, t Times) (Signer, error) {
	signer, err := p.verifyPackage(r, sig, t)
	if err != nil {
		return Signer{}, fmt.Errorf("cannot verify the package: %w", err)
	}
	return signer, nil
}

func (p *Policy) verifyPackage(r io.Reader, sig []byte, t Times) (Signer, error) {
	body, err := onePacket(sig)
	if err != nil {
		return Signer{}, fault.Refusedf("%w", err)
	}
	s, err := parsePGPSignature(body, classBinary, nil)
	if err != nil {
		return Signer{}, fault.Refusedf("%w", err)
	}
	primary, key, err := p.packageKey(s.issuer)
	if err != nil {
		return Signer{}, fault.Refusedf("%w %s", err, s.issuer).
			Hint("the release root in force names the keys that count")
	}
	for _, k := range []pgpKey{primary, key} {
		if !k.lives(s.made) {
			return Signer{}, fault.Refusedf("%w: made %s, key %s lives %s", ErrOutsideLife, stamp(s.made), k.fingerprint, k.life())
		}
	}
	if err := t.passed(s.made); err != nil {
		return Signer{}, err
	}
	public, err := readSignature(body)
	if err != nil {
		return Signer{}, fault.Refusedf("%w", err)
	}
	h := public.Hash.New()
	if _, err := io.Copy(h, r); err != nil {
		return Signer{}, err
	}
	if err := key.public.VerifySignature(h, public); err != nil {
		return Signer{}, fault.Refusedf("%w of key %s", ErrBadSignature, key.fingerprint)
	}
	// go-crypto has hashed the rest, and does not look at this for v4.
	if !bytes.Equal(h.Sum(nil)[:2], s.tag[:]) {
		return Signer{}, fault.Refusedf("%w of key %s: its hash begins differently", ErrBadSignature, key.fingerprint)
	}
	return Signer{Key: primary.fingerprint, Root: p.inForce().root.Version}, nil
}

// onePacket returns the body of the one signature packet that sig is.
func onePacket(sig []byte) ([]byte, error) {
	switch {
	case len(sig) == 0:
		return nil, fmt.Errorf("%w: it is empty", ErrNoSignature)
	case bytes.HasPrefix(bytes.TrimSpace(sig), []byte("-----BEGIN")):
		return nil, ErrArmored
	case len(sig) > MaxPackageSignature:
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d are read", ErrMalformed, len(sig), MaxPackageSignature)
	}
	tag, body, rest, err := nextPacket(sig)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if tag != tagSignature {
		return nil, fmt.Errorf("%w: packet %d is none", ErrMalformed, tag)
	}
	if len(rest) > 0 {
		if tag, _, _, err := nextPacket(rest); err == nil && tag == tagSignature {
			return nil, ErrSeveral
		}
		return nil, fmt.Errorf("%w: %d", ErrTrailing, len(rest))
	}
	return body, nil
}

// packageKey finds the key with the fingerprint, and the primary key it
// belongs to, among those the root in force names for packages.
func (p *Policy) packageKey(id string) (primary, key pgpKey, err error) {
	l := p.inForce()
	if l == nil {
		return primary, key, ErrUnknownKey
	}
	if slices.Contains(l.root.Revoked, id) {
		return primary, key, ErrRevokedKey
	}
	for _, c := range l.packages {
		for _, k := range c.keys {
			if k.fingerprint == id && k.signs {
				return c.keys[0], k, nil
			}
		}
	}
	return primary, key, ErrUnknownKey
}

// passed reports whether made is a moment that can have passed.
func (t Times) passed(made time.Time) error {
	var latest time.Time
	var known []string
	for _, k := range []struct {
		name string
		time time.Time
	}{{"the clock says", t.Clock}, {"this program was built", t.Build}, {"the newest bundle is of", t.Bundle}} {
		if k.time.IsZero() {
			continue
		}
		known = append(known, k.name+" "+stamp(k.time))
		if k.time.After(latest) {
			latest = k.time
		}
	}
	if made.After(latest.Add(early)) {
		return fault.Refusedf("%w: made %s, more than a day after all that is known of the time (%s)",
			ErrFuture, stamp(made), strings.Join(known, ", ")).
			Hint("set the machine's clock; gpg, which pacman asks, looks at nothing else")
	}
	return nil
}

func (k pgpKey) life() string {
	if k.expires.IsZero() {
		return "from " + stamp(k.created)
	}
	return "from " + stamp(k.created) + " until " + stamp(k.expires)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// IsPackage reports whether a file of that name is a package of pacman's, which
// VerifyPackageFile is for.
func IsPackage(name string) bool {
	base := filepath.Base(name)
	return strings.Contains(base, ".pkg.tar") && !strings.HasSuffix(base, PackageSignatureSuffix) && !strings.HasSuffix(base, SignatureSuffix)
}

// VerifyPackageFile verifies the package at path by the signature that lies
// beside it (path + PackageSignatureSuffix), as VerifyPackage does.
func VerifyPackageFile(path string, p *Policy, t Times) (digest.Digest, Signer, error) {
	sig, err := input.ReadFile(path+PackageSignatureSuffix, MaxSignature)
	if errors.Is(err, fs.ErrNotExist) {
		return "", Signer{}, fault.Refusedf("cannot verify %q: %w, there is no %q", path, ErrNoSignature, path+PackageSignatureSuffix)
	}
	if err != nil {
		return "", Signer{}, fmt.Errorf("cannot read signature: %w", err)
	}
	f, _, err := input.Regular(path)
	if err != nil {
		return "", Signer{}, fmt.Errorf("cannot verify package: %w", err)
	}
	defer f.Close()
	d := digest.SHA256.Digester()
	signer, err := p.verifyPackage(io.TeeReader(f, d.Hash()), sig, t)
	if err != nil {
		return "", Signer{}, fmt.Errorf("cannot verify %q: %w", path, err)
	}
	return d.Digest(), signer, nil
}
