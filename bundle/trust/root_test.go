package trust

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"testing"

	"github.com/opencontainers/go-digest"
)

// chain makes n roots, each with a root key and a release key of its own.
func chain(t testing.TB, n int) (files [][]byte, releases []*ecdsa.PrivateKey) {
	t.Helper()
	var prev *Root
	var before *ecdsa.PrivateKey
	for range n {
		rootKey, release := newKey(t), newKey(t)
		r := NewRoot(prev, []Key{key(t, rootKey, ScopeRoot), key(t, release, ScopeRelease)})
		signers := []crypto.Signer{rootKey}
		if before != nil {
			signers = append(signers, before)
		}
		files = append(files, must[[]byte](t)(SignRoot(r, signers...)))
		releases = append(releases, release)
		prev, before = &r, rootKey
	}
	return files, releases
}

func TestAMachineThatSleptWalksTheChain(t *testing.T) {
	files, releases := chain(t, 11)
	p := must[*Policy](t)(FromRoot(files[0]))
	now := must[*Policy](t)(p.Advance(files))
	if v, fp := now.Root(); v != 11 || fp != digest.FromBytes(files[10]).Encoded() {
		t.Errorf("root %d %s", v, fp)
	}
	if v, _ := p.Root(); v != 1 {
		t.Errorf("the policy itself moved to %d", v)
	}
	if _, err := now.Verify(subject, [][]byte{sign(t, releases[10], subject)}, ScopeRelease); err != nil {
		t.Error(err)
	}
	_, err := now.Verify(subject, [][]byte{sign(t, releases[0], subject)}, ScopeRelease)
	refused(t, err, ErrUnknownKey, "")
	if again := must[*Policy](t)(now.Advance(files[:5])); !bytes.Equal(again.RootBytes(), files[10]) {
		t.Error("an older root moved it")
	}
	recorded := must[*Policy](t)(FromRoot(now.RootBytes()))
	if v, _ := must[*Policy](t)(Merge(recorded, p)).Root(); v != 11 {
		t.Errorf("what the software brought moved it back to %d", v)
	}
}

func TestARootThatIsNotTheNextLinkIsRefused(t *testing.T) {
	files, _ := chain(t, 4)
	others, _ := chain(t, 4)
	p := must[*Policy](t)(FromRoot(files[0]))
	_, err := p.Advance([][]byte{files[2], files[3]})
	refused(t, err, nil, "gap")
	_, err = p.Advance([][]byte{files[1], files[3]})
	refused(t, err, nil, "gap")
	_, err = p.Advance(others[:1])
	refused(t, err, ErrUnknownKey, "not the one in force")
	_, err = p.Advance(others[1:])
	refused(t, err, ErrBadSignature, "version 1 signed")
	keys := must[*Policy](t)(FromKeys(newKey(t).Public()))
	if q, err := keys.Advance(files); err != nil || q != keys {
		t.Errorf("keys alone do not begin a chain: %v", err)
	}
}

func TestARootNeedsBothThresholds(t *testing.T) {
	a, b, c, d := newKey(t), newKey(t), newKey(t), newKey(t)
	one := NewRoot(nil, []Key{key(t, a, ScopeRoot), key(t, b, ScopeRoot), key(t, c, ScopeRoot, ScopeRelease)})
	one.Threshold = 2
	first := must[[]byte](t)(SignRoot(one, a, b))
	p := must[*Policy](t)(FromRoot(first))
	two := NewRoot(&one, []Key{key(t, c, ScopeRoot), key(t, d, ScopeRoot)})
	if two.Threshold != 2 {
		t.Fatalf("threshold %d", two.Threshold)
	}
	_, err := SignRoot(two, a, b, c) // one of its own is missing
	refused(t, err, ErrBadSignature, "1 of the root keys of version 2")
	_, err = SignRoot(two, c, c, c) // one key counts once
	refused(t, err, ErrBadSignature, "1 of the root keys of version 2")
	_, err = p.Advance([][]byte{must[[]byte](t)(SignRoot(two, c, d))}) // one of the old is missing
	refused(t, err, ErrBadSignature, "1 of the root keys of version 1")
	if _, err := p.Advance([][]byte{must[[]byte](t)(SignRoot(two, a, c, d))}); err != nil {
		t.Error(err)
	}
}

func TestWhatWasRevokedStaysRevoked(t *testing.T) {
	k, lost := newKey(t), newKey(t)
	one := NewRoot(nil, []Key{key(t, k, ScopeRoot)}, id(t, lost))
	p := must[*Policy](t)(FromRoot(must[[]byte](t)(SignRoot(one, k))))
	two := NewRoot(&one, one.Keys)
	two.Revoked = []string{}
	_, err := p.Advance([][]byte{must[[]byte](t)(SignRoot(two, k))})
	refused(t, err, nil, "was revoked")
	_, err = SignRoot(NewRoot(&one, []Key{key(t, k, ScopeRoot), key(t, lost, ScopeRelease)}), k)
	refused(t, err, nil, "listed and revoked")
}

func TestMalformedRootsAreRefused(t *testing.T) {
	k, other := newKey(t), newKey(t)
	good := NewRoot(nil, []Key{key(t, k, ScopeRoot, ScopeRelease)})
	file := must[[]byte](t)(SignRoot(good, k))
	for name, change := range map[string]func(*Root){
		"version 0":       func(r *Root) { r.Version = 0 },
		"threshold 0":     func(r *Root) { r.Threshold = 0 },
		"threshold 2":     func(r *Root) { r.Threshold = 2 },
		"no keys":         func(r *Root) { r.Keys = nil },
		"no revoked":      func(r *Root) { r.Revoked = nil },
		"id of another":   func(r *Root) { r.Keys[0].ID = id(t, other) },
		"no scope":        func(r *Root) { r.Keys[0].Scope = nil },
		"unsorted scope":  func(r *Root) { r.Keys[0].Scope = []Scope{ScopeRoot, ScopeRelease} },
		"unknown scope":   func(r *Root) { r.Keys[0].Scope = []Scope{"all", ScopeRoot} },
		"key twice":       func(r *Root) { r.Keys = append(r.Keys, r.Keys[0]) },
		"bad revoked id":  func(r *Root) { r.Revoked = []string{"x"} },
		"pem with a tail": func(r *Root) { r.Keys[0].Public += "\n" },
		"signed by no one listed": func(r *Root) {
			r.Keys = []Key{key(t, other, ScopeRoot)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			r.Keys = []Key{good.Keys[0]}
			change(&r)
			_, err := SignRoot(r, k)
			refused(t, err, nil, "")
		})
	}
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 1
		_, err := ParseRoot(bad)
		refused(t, err, nil, "")
	}
	_, err := ParseRoot(append(bytes.Clone(file), '\n'))
	refused(t, err, nil, "")
	_, err = ParseRoot(bytes.Repeat([]byte("x"), MaxRoot+1))
	refused(t, err, nil, "at most")
	_, err = ParseRoot(sign(t, k, subject))
	refused(t, err, nil, "")
}
