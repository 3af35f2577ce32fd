package trust

import (
	"crypto"
	"errors"
	"testing"
)

// TestAKeySignsWhatItsScopeSays: each key is asked for each scope, and counts for
// its own alone, also when a key file names it.
func TestAKeySignsWhatItsScopeSays(t *testing.T) {
	rootKey, release := newKey(t), newKey(t)
	packager := newPublisher(t, noon)
	named := packager.policy.Keys(ScopePackage)
	if len(named) == 0 {
		t.Fatal("the test's publisher has no package key")
	}
	keys := append([]Key{key(t, rootKey, ScopeRoot), key(t, release, ScopeRelease)}, named...)
	p := must[*Policy](t)(FromRoot(must[[]byte](t)(SignRoot(NewRoot(nil, keys), rootKey))))
	loose := must[*Policy](t)(Merge(p, must[*Policy](t)(FromKeys(rootKey.Public(), release.Public()))))
	for _, policy := range []*Policy{p, loose} {
		for _, signer := range []crypto.Signer{rootKey, release} {
			for _, scope := range []Scope{ScopeRelease, ScopePackage, ScopeRoot} {
				_, err := policy.Verify(subject, [][]byte{sign(t, signer, subject)}, scope)
				may := signer == crypto.Signer(release) && scope == ScopeRelease || signer == crypto.Signer(rootKey) && scope == ScopeRoot
				if may != (err == nil) || !may && !errors.Is(err, ErrUnknownKey) {
					t.Errorf("root key: %v, scope %q: %v", signer == crypto.Signer(rootKey), scope, err)
				}
			}
		}
		// A package key is an OpenPGP key: no bundle can name it, and asked for by
		// its fingerprint it may not sign one either.
		for _, k := range named {
			if _, err := policy.Key(k.ID, ScopeRelease); !errors.Is(err, ErrUnknownKey) {
				t.Errorf("package key %s signs a bundle: %v", k.ID, err)
			}
		}
	}
	// Nor is a P-256 key ever one for packages, so that it cannot be both.
	both := NewRoot(nil, []Key{key(t, rootKey, ScopeRoot), key(t, release, ScopePackage, ScopeRelease)})
	_, err := SignRoot(both, rootKey)
	refused(t, err, nil, "none that such a key can have")
	// A release key signs no root.
	second := NewRoot(&Root{Version: 1, Threshold: 1}, []Key{key(t, release, ScopeRoot)})
	file := must[[]byte](t)(SignRoot(second, release))
	_, err = p.Advance([][]byte{file})
	refused(t, err, ErrBadSignature, "0 of the root keys of version 1")
}
