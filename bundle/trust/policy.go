package trust

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Policy says whose signature counts. It is never changed: what moves it
// returns a new one.
type Policy struct {
	// chain is the roots that are known, oldest first; the last is in force.
	chain []*link
	// loose are keys from key files, for releases.
	loose map[string]*ecdsa.PublicKey
}

// FromRoot trusts one release root as it is: the first one found, or the one
// in force as it was recorded.
func FromRoot(root []byte) (*Policy, error) {
	l, err := parseLink(root)
	if err != nil {
		return nil, err
	}
	return &Policy{chain: []*link{l}}, nil
}

// Merge trusts what any of the policies trusts. The root of the first policy
// that has one is in force, and moves along the roots of the others as Advance
// says; so the order is: what is recorded, what the software brought.
func Merge(policies ...*Policy) (*Policy, error) {
	out := &Policy{loose: map[string]*ecdsa.PublicKey{}}
	for _, p := range policies {
		if p == nil {
			continue
		}
		maps.Copy(out.loose, p.loose)
		if len(out.chain) == 0 {
			out.chain = p.chain
			continue
		}
		next, err := out.advance(p.chain)
		if err != nil {
			return nil, err
		}
		out = next
	}
	return out, nil
}

// Empty reports whether nothing is trusted.
func (p *Policy) Empty() bool { return p == nil || len(p.chain) == 0 && len(p.loose) == 0 }

func (p *Policy) inForce() *link {
	if p == nil || len(p.chain) == 0 {
		return nil
	}
	return p.chain[len(p.chain)-1]
}

// Root returns the version of the root in force and its fingerprint, the hex
// SHA-256 of its file (what sha256sum prints); 0 and "" when there is none.
func (p *Policy) Root() (version int, fingerprint string) {
	l := p.inForce()
	if l == nil {
		return 0, ""
	}
	sum := sha256.Sum256(l.raw)
	return l.root.Version, hex.EncodeToString(sum[:])
}

// RootBytes returns the root in force as its file holds it; nil if none.
func (p *Policy) RootBytes() []byte {
	if l := p.inForce(); l != nil {
		return slices.Clone(l.raw)
	}
	return nil
}

// Chain returns the files of the roots that are known, oldest first.
func (p *Policy) Chain() [][]byte {
	var out [][]byte
	for _, l := range p.chain {
		out = append(out, slices.Clone(l.raw))
	}
	return out
}

// Advance moves the root in force along roots, oldest first, as a bundle
// brings them. Roots older than the one in force are passed over, one of its
// version must be the same document, and each newer one must follow the one
// before it. A policy without a root has nothing to move and ignores them.
func (p *Policy) Advance(roots [][]byte) (*Policy, error) {
	if p.inForce() == nil {
		return p, nil
	}
	var links []*link
	for _, b := range roots {
		l, err := parseLink(b)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	return p.advance(links)
}

func (p *Policy) advance(links []*link) (*Policy, error) {
	out := &Policy{chain: slices.Clone(p.chain), loose: p.loose}
	for _, l := range links {
		now := out.inForce()
		switch {
		case l.root.Version < now.root.Version:
		case l.root.Version == now.root.Version:
			if !bytes.Equal(l.sum, now.sum) {
				return nil, fault.Refusedf("cannot trust release root %d: %w: it is another publisher's, not the one in force here",
					l.root.Version, ErrUnknownKey).Hint("fetch the release of the publisher this machine trusts")
			}
		default:
			if err := l.follows(now); err != nil {
				return nil, err
			}
			out.chain = append(out.chain, l)
		}
	}
	return out, nil
}

// Why a signature does not count. Each is in the chain of the error that says
// so, which is a fault of kind Refused.
var (
	ErrNoSignature  = errors.New("no signature")
	ErrUnknownKey   = errors.New("unknown key")
	ErrRevokedKey   = errors.New("revoked key")
	ErrBadSignature = errors.New("bad signature")
)

// key finds the key that may sign for scope, and the version of the root that
// names it.
func (p *Policy) key(id string, scope Scope) (*ecdsa.PublicKey, int, error) {
	if l := p.inForce(); l != nil {
		if slices.Contains(l.root.Revoked, id) {
			return nil, 0, ErrRevokedKey
		}
		for _, k := range l.root.Keys {
			if k.ID != id {
				continue
			}
			// What the root says of a key it names is all there is to say.
			if !slices.Contains(k.Scope, scope) {
				return nil, 0, ErrUnknownKey
			}
			return l.keys[id], l.root.Version, nil
		}
	}
	if pub, ok := p.loose[id]; ok && scope == ScopeRelease {
		return pub, 0, nil
	}
	return nil, 0, ErrUnknownKey
}

// Key returns the key called id (KeyID) when it may sign for scope; the error is
// a fault of kind Refused with ErrUnknownKey or ErrRevokedKey in its chain.
func (p *Policy) Key(id string, scope Scope) (*ecdsa.PublicKey, error) {
	key, _, err := p.key(id, scope)
	if err != nil {
		return nil, fault.Refusedf("key %s may not sign: %w", id, err)
	}
	return key, nil
}

// FromKeys trusts the public keys, ECDSA P-256, for releases.
func FromKeys(keys ...crypto.PublicKey) (*Policy, error) {
	p := &Policy{loose: map[string]*ecdsa.PublicKey{}}
	for _, k := range keys {
		id, err := KeyID(k)
		if err != nil {
			return nil, err
		}
		p.loose[id] = k.(*ecdsa.PublicKey)
	}
	return p, nil
}

// Keys returns the keys that may sign for scope, sorted by id: those the root in
// force names and, for releases, those from key files.
func (p *Policy) Keys(scope Scope) []Key {
	var out []Key
	if l := p.inForce(); l != nil {
		for _, k := range l.root.Keys {
			if slices.Contains(k.Scope, scope) {
				k.Scope = slices.Clone(k.Scope)
				out = append(out, k)
			}
		}
	}
	for id, pub := range p.loose {
		_, version, err := p.key(id, scope)
		if k, errKey := NewKey(pub, scope); err == nil && errKey == nil && version == 0 {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b Key) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// May reports whether the key may sign for scope; the error is a fault of kind
// Refused with ErrUnknownKey or ErrRevokedKey in its chain.
func (p *Policy) May(public crypto.PublicKey, scope Scope) error {
	id, err := KeyID(public)
	if err != nil {
		return err
	}
	_, err = p.Key(id, scope)
	return err
}
