package trust

import (
	"crypto"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const (
	// RootPayload is the payload type of a release root's envelope.
	RootPayload = "application/vnd.nox-mesh.root.v1+json"
	// MaxRoot bounds the file of a release root, in bytes.
	MaxRoot = 16 << 10
)

// A Root is a release root: who may publish. It has no expiry date: no clock
// is consulted when something is verified.
type Root struct {
	// Keys are sorted by id.
	Keys []Key `json:"keys"`
	// Revoked are ids of keys that never count again, sorted; a later root
	// may add to them and take none away.
	Revoked []string `json:"revoked"`
	// Threshold is how many root keys must sign the next root, and this one.
	Threshold int `json:"threshold"`
	// Version counts from 1.
	Version int `json:"version"`
}

// NewRoot makes the next root after previous, or the first when that is nil:
// sorted, with threshold 1 or that of previous, and all that was revoked.
func NewRoot(previous *Root, keys []Key, revoke ...string) Root {
	r := Root{Version: 1, Threshold: 1, Keys: slices.Clone(keys), Revoked: append([]string{}, revoke...)}
	if previous != nil {
		r.Version, r.Threshold = previous.Version+1, previous.Threshold
		r.Revoked = append(r.Revoked, previous.Revoked...)
	}
	slices.SortFunc(r.Keys, func(a, b Key) int { return strings.Compare(a.ID, b.ID) })
	slices.Sort(r.Revoked)
	r.Revoked = slices.Compact(r.Revoked)
	return r
}

// SignRoot signs a root and returns its file. Root N+1 is signed by enough
// root keys of N and of N+1; SignRoot itself holds only that its own sign it.
func SignRoot(root Root, signers ...crypto.Signer) ([]byte, error) {
	payload, err := canonical.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("cannot sign root %d: %w", root.Version, err)
	}
	e, err := signEnvelope(RootPayload, payload, true, signers...)
	if err != nil {
		return nil, fmt.Errorf("cannot sign root %d: %w", root.Version, err)
	}
	b, err := canonical.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("cannot sign root %d: %w", root.Version, err)
	}
	if _, err := ParseRoot(b); err != nil {
		return nil, err
	}
	return b, nil
}

// ParseRoot reads a root's file and checks that its own root keys signed it.
// That says nothing about whether to believe it: see FromRoot and Advance.
func ParseRoot(b []byte) (*Root, error) {
	l, err := parseLink(b)
	if err != nil {
		return nil, err
	}
	return l.root, nil
}

// A link is a root that was read: one link of the chain.
type link struct {
	root *Root
	raw  []byte
	sigs []envelopeSignature
	sum  []byte
	keys map[string]*ecdsa.PublicKey
	// packages are the OpenPGP keys.
	packages []*certificate
}

func parseLink(b []byte) (*link, error) {
	if len(b) > MaxRoot {
		return nil, fault.Refusedf("cannot read the release root: it has %d bytes, at most %d are read", len(b), MaxRoot)
	}
	var e envelope
	if err := canonical.Unmarshal(b, &e); err != nil {
		return nil, fault.Refusedf("cannot read the release root: %w", err)
	}
	if e.PayloadType != RootPayload {
		return nil, fault.Refusedf("cannot read the release root: its payload type is %q, not %q", e.PayloadType, RootPayload)
	}
	payload, err := strictBase64.DecodeString(e.Payload)
	if err != nil {
		return nil, fault.Refusedf("cannot read the release root: its payload is not base64")
	}
	l := &link{root: &Root{}, raw: slices.Clone(b), sigs: e.Signatures, sum: preAuth(e.PayloadType, payload)}
	if err := canonical.Unmarshal(payload, l.root); err != nil {
		return nil, fault.Refusedf("cannot read the release root: %w", err)
	}
	if l.keys, l.packages, err = l.root.check(); err != nil {
		return nil, fault.Refusedf("cannot read release root %d: %w", l.root.Version, err)
	}
	// Root 1 has nobody else to sign it, and a later one is signed by its own
	// keys too, so that a key that nobody holds is never brought in.
	if err := l.signedBy(l); err != nil {
		return nil, err
	}
	return l, nil
}

// check holds what every root must be, and returns its keys of either kind.
func (r *Root) check() (map[string]*ecdsa.PublicKey, []*certificate, error) {
	if r.Version < 1 || r.Version > 1<<31-1 {
		return nil, nil, errors.New("its version is out of range")
	}
	if r.Keys == nil || r.Revoked == nil {
		return nil, nil, errors.New("keys and revoked must be lists")
	}
	before := ""
	for _, id := range r.Revoked {
		if !canonical.Hex(id) && !isFingerprint(id) || id <= before {
			return nil, nil, errors.New("its revoked ids are not sorted ids")
		}
		before = id
	}
	keys, packages, signers := map[string]*ecdsa.PublicKey{}, []*certificate(nil), 0
	before = ""
	for _, k := range r.Keys {
		if k.ID <= before {
			return nil, nil, errors.New("its keys are not sorted by id, each once")
		}
		before = k.ID
		public, openPGP, err := k.check(r.Revoked)
		if err != nil {
			return nil, nil, fmt.Errorf("key %q: %w", k.ID, err)
		}
		if openPGP != nil {
			packages = append(packages, openPGP)
			continue
		}
		keys[k.ID] = public
		if slices.Contains(k.Scope, ScopeRoot) {
			signers++
		}
	}
	if r.Threshold < 1 || r.Threshold > signers {
		return nil, nil, fmt.Errorf("its threshold is %d with %d root keys", r.Threshold, signers)
	}
	return keys, packages, nil
}

// check reads the key as a root names it: it is of one kind, spelled in the one
// way there is, and not revoked.
func (k Key) check(revoked []string) (*ecdsa.PublicKey, *certificate, error) {
	if k.OpenPGP != "" {
		c, err := k.certificate()
		switch {
		case err != nil:
			return nil, nil, err
		case k.Public != "":
			return nil, nil, errors.New("it is of two kinds")
		case c.keys[0].fingerprint != k.ID:
			return nil, nil, errors.New("id and public key do not belong together")
		case !slices.Equal(k.Scope, []Scope{ScopePackage}):
			return nil, nil, errors.New("an OpenPGP key has the scope package and no other")
		}
		for _, key := range c.keys {
			if slices.Contains(revoked, key.fingerprint) {
				return nil, nil, errors.New("it is listed and revoked")
			}
		}
		return nil, c, nil
	}
	pub, id, err := parsePublic([]byte(k.Public))
	if err != nil {
		return nil, nil, err
	}
	want, err := NewKey(pub, k.Scope...)
	switch {
	case err != nil:
		return nil, nil, err
	case id != k.ID || want.Public != k.Public:
		return nil, nil, errors.New("id and public key do not belong together")
	case len(k.Scope) == 0 || !slices.Equal(want.Scope, k.Scope):
		return nil, nil, errors.New("its scope is not a sorted list")
	case slices.Contains(revoked, k.ID):
		return nil, nil, errors.New("it is listed and revoked")
	}
	for _, s := range k.Scope {
		if s != ScopeRelease && s != ScopeRoot {
			return nil, nil, fmt.Errorf("scope %q is none that such a key can have", s)
		}
	}
	return pub, nil, nil
}

// signedBy reports whether a threshold of the root keys of by signed l. Each
// key counts once, however many signatures it made.
func (l *link) signedBy(by *link) error {
	good := map[string]bool{}
	for _, k := range by.root.Keys {
		if !slices.Contains(k.Scope, ScopeRoot) {
			continue
		}
		for _, s := range l.sigs {
			if s.KeyID == k.ID && s.verifies(by.keys[k.ID], l.sum) {
				good[k.ID] = true
			}
		}
	}
	if len(good) < by.root.Threshold {
		return fault.Refusedf("cannot trust release root %d: %w: %d of the root keys of version %d signed it, %d must",
			l.root.Version, ErrBadSignature, len(good), by.root.Version, by.root.Threshold)
	}
	return nil
}

// follows reports whether l is the root that comes after prev.
func (l *link) follows(prev *link) error {
	if l.root.Version != prev.root.Version+1 {
		return fault.Refusedf("cannot trust release root %d: it does not follow version %d, the chain has a gap",
			l.root.Version, prev.root.Version).Hint("get the roots in between")
	}
	if err := l.signedBy(prev); err != nil {
		return err
	}
	for _, id := range prev.root.Revoked {
		if !slices.Contains(l.root.Revoked, id) {
			return fault.Refusedf("cannot trust release root %d: key %s was revoked by version %d and is no longer",
				l.root.Version, id, prev.root.Version)
		}
	}
	return nil
}
