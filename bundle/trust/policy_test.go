package trust

import (
	"crypto"
	"slices"
	"strings"
	"testing"
)

// TestKeysAreThoseThatMaySign: what the root says of a key it names goes over a
// key file with the same key.
func TestKeysAreThoseThatMaySign(t *testing.T) {
	root, release, gone, loose := newKey(t), newKey(t), newKey(t), newKey(t)
	document := must[[]byte](t)(SignRoot(NewRoot(nil, []Key{key(t, root, ScopeRoot), key(t, release, ScopeRelease)}, id(t, gone)), root))
	named := must[*Policy](t)(FromRoot(document))
	var files []crypto.PublicKey
	for _, k := range []crypto.Signer{root, release, gone, loose} {
		files = append(files, k.Public())
	}
	policy := must[*Policy](t)(Merge(named, must[*Policy](t)(FromKeys(files...))))
	for scope, want := range map[Scope][]string{
		ScopeRelease: {id(t, release), id(t, loose)}, ScopeRoot: {id(t, root)}, ScopePackage: nil,
	} {
		slices.Sort(want)
		var got []string
		for _, k := range policy.Keys(scope) {
			got = append(got, k.ID)
			if !strings.HasPrefix(k.Public, "-----BEGIN PUBLIC KEY-----\n") || !slices.Contains(k.Scope, scope) {
				t.Errorf("%s: %+v", scope, k)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", scope, got, want)
		}
	}
}
