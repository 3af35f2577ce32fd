package bundle

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A house of keys: a chain of roots that grows.
type house struct {
	t     testing.TB
	root  *ecdsa.PrivateKey
	last  *trust.Root
	files [][]byte
}

func newHouse(t testing.TB) *house { return &house{t: t, root: newKey(t)} }

// next adds a root that names the release keys and revokes others.
func (h *house) next(release []*ecdsa.PrivateKey, revoked ...*ecdsa.PrivateKey) {
	h.t.Helper()
	keys := []trust.Key{must[trust.Key](h.t)(trust.NewKey(h.root.Public(), trust.ScopeRoot))}
	for _, k := range release {
		keys = append(keys, must[trust.Key](h.t)(trust.NewKey(k.Public(), trust.ScopeRelease)))
	}
	var ids []string
	for _, k := range revoked {
		ids = append(ids, must[string](h.t)(trust.KeyID(k.Public())))
	}
	r := trust.NewRoot(h.last, keys, ids...)
	h.files = append(h.files, must[[]byte](h.t)(trust.SignRoot(r, h.root)))
	h.last = &r
}

// policy is what a machine trusts that knows the first n roots.
func (h *house) policy(n int) *trust.Policy {
	h.t.Helper()
	p := must[*trust.Policy](h.t)(trust.FromRoot(h.files[0]))
	return must[*trust.Policy](h.t)(p.Advance(h.files[1:n]))
}

func put(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.bundle.tar")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// keysOf says who signed.
func keysOf(signers []trust.Signer) []string {
	var out []string
	for _, s := range signers {
		out = append(out, s.Key)
	}
	return out
}

// What is signed again is what would have been built with those signers: the
// builder is the oracle, to the byte.
func TestResignedIsAsBuilt(t *testing.T) {
	old, young, third := newKey(t), newKey(t), newKey(t)
	h := newHouse(t)
	h.next([]*ecdsa.PrivateKey{old})
	h.next([]*ecdsa.PrivateKey{old, young, third})
	built := func(roots [][]byte, signers ...crypto.Signer) []byte {
		spec := specOf(3000, signers...)
		spec.Roots = roots
		return bytesOf(t, spec)
	}
	chain := func(n int) [][]byte { return h.files[:n] }
	for _, c := range []struct {
		name      string
		from      []byte
		resigning Resigning
		want      []byte
		dropped   int
	}{
		{"the other key in its place", built(nil, old), Resigning{Policy: trusting(t, old.Public()), Signers: []crypto.Signer{young}}, built(nil, young), 1},
		{"the same key again", built(nil, old), Resigning{Policy: trusting(t, old.Public()), Signers: []crypto.Signer{old}}, built(nil, old), 0},
		{"old and new", built(chain(2), old), Resigning{Policy: h.policy(2), Signers: []crypto.Signer{young}, Add: true}, built(chain(2), old, young), 0},
		{"old and new, twice", built(chain(2), young, old), Resigning{Policy: h.policy(2), Signers: []crypto.Signer{young}, Add: true}, built(chain(2), old, young), 0},
		{"only new", built(chain(2), old, young), Resigning{Policy: h.policy(2), Signers: []crypto.Signer{young}}, built(chain(2), young), 1},
		{"two new", built(chain(2), old), Resigning{Policy: h.policy(2), Signers: []crypto.Signer{young, third}, Add: true}, built(chain(2), old, young, third), 0},
		{"a longer chain", built(chain(1), old), Resigning{Policy: h.policy(2), Signers: []crypto.Signer{young}, Add: true, Roots: chain(2)}, built(chain(2), old, young), 0},
		{"a chain for one that had none", built(nil, old), Resigning{Policy: h.policy(2), Signers: []crypto.Signer{old}, Roots: chain(2)}, built(chain(2), old), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := put(t, c.from)
			before := must[os.FileInfo](t)(os.Stat(in))
			out := filepath.Join(t.TempDir(), "other")
			done, err := Resign(ctx, in, out, c.resigning)
			if err != nil {
				t.Fatal(err)
			}
			if got := must[[]byte](t)(os.ReadFile(out)); !bytes.Equal(got, c.want) {
				t.Error("other bytes than built")
			}
			if done.Dropped != c.dropped {
				t.Errorf("%d dropped, want %d", done.Dropped, c.dropped)
			}
			if got := must[[]byte](t)(os.ReadFile(in)); !bytes.Equal(got, c.from) {
				t.Error("the file that was read is changed")
			}
			must[*Resigned](t)(Resign(ctx, in, in, c.resigning))
			if got := must[[]byte](t)(os.ReadFile(in)); !bytes.Equal(got, c.want) {
				t.Error("in its own place: other bytes")
			}
			if es := must[[]os.DirEntry](t)(os.ReadDir(filepath.Dir(in))); len(es) != 1 {
				t.Errorf("%d files are left", len(es))
			}
			if fi := must[os.FileInfo](t)(os.Stat(in)); fi.Mode() != before.Mode() {
				t.Errorf("mode %v, was %v", fi.Mode(), before.Mode())
			}
		})
	}
}

// A rotation as a fleet sees it: machines that know only the old root, and ones
// that know the new one, take the same file.
func TestARotationThroughResign(t *testing.T) {
	old, young := newKey(t), newKey(t)
	h := newHouse(t)
	h.next([]*ecdsa.PrivateKey{old})
	spec := specOf(3000, old)
	spec.Roots = h.files
	path := put(t, bytesOf(t, spec))
	h.next([]*ecdsa.PrivateKey{old, young})
	takes := func(policy *trust.Policy, want ...*ecdsa.PrivateKey) {
		t.Helper()
		f := must[*os.File](t)(os.Open(path))
		defer f.Close()
		info, err := Read(ctx, f, Options{Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range want {
			if got := keysOf(info.Signers); len(got) != len(want) || !slices.Contains(got, must[string](t)(trust.KeyID(k.Public()))) {
				t.Fatalf("signed by %v", got)
			}
		}
	}
	before := must[*Resigned](t)(Resign(ctx, path, path, Resigning{Policy: h.policy(2), Signers: []crypto.Signer{young}, Add: true, Roots: h.files}))
	takes(h.policy(1), old, young)            // walks to root 2
	takes(trusting(t, old.Public()), old)     // knows the old key and no root
	takes(trusting(t, young.Public()), young) // knows the new key and no root
	h.next([]*ecdsa.PrivateKey{young}, old)
	takes(h.policy(3), young)
	after := must[*Resigned](t)(Resign(ctx, path, path, Resigning{Policy: h.policy(3), Signers: []crypto.Signer{young}, Add: true, Roots: h.files}))
	if after.Dropped != 1 || after.Digest != before.Digest {
		t.Errorf("%d dropped, %s, was %s", after.Dropped, after.Digest, before.Digest)
	}
	takes(h.policy(1), young)
	takes(h.policy(3), young)
	f := must[*os.File](t)(os.Open(path))
	defer f.Close()
	_, err := Read(ctx, f, Options{Policy: trusting(t, old.Public())})
	refused(t, err, "unknown key")
}

func TestWhatIsNotResigned(t *testing.T) {
	old, young, stranger := newKey(t), newKey(t), newKey(t)
	h := newHouse(t)
	h.next([]*ecdsa.PrivateKey{old})
	spec := specOf(3000, old)
	spec.Roots = h.files[:1]
	good := bytesOf(t, spec)
	h.next([]*ecdsa.PrivateKey{young}, old)
	flipped := bytes.Clone(good)
	flipped[len(flipped)-2000] ^= 1
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	foreign := newHouse(t)
	foreign.next([]*ecdsa.PrivateKey{young})
	seventeen := Resigning{Policy: trusting(t, old.Public())}
	for range 17 {
		seventeen.Signers = append(seventeen.Signers, newKey(t))
	}
	full := make([]crypto.Signer, 16)
	for i := range full {
		full[i] = newKey(t)
	}
	for _, c := range []struct {
		name string
		b    []byte
		r    Resigning
		text string
	}{
		{"a stranger's", good, Resigning{Policy: trusting(t, stranger.Public()), Signers: []crypto.Signer{stranger}}, "unknown key"},
		{"signed by a revoked key alone", good, Resigning{Policy: h.policy(2), Signers: []crypto.Signer{young}, Roots: h.files}, "revoked key"},
		{"damaged in its content", flipped, Resigning{Policy: h.policy(1), Signers: []crypto.Signer{old}}, "digest mismatch"},
		{"cut", good[:len(good)-512], Resigning{Policy: h.policy(1), Signers: []crypto.Signer{old}}, "truncated"},
		{"by a key its roots do not name", good, Resigning{Policy: h.policy(1), Signers: []crypto.Signer{stranger}}, "unknown key"},
		{"by a revoked key", good, Resigning{Policy: h.policy(1), Signers: []crypto.Signer{old}, Roots: h.files}, "revoked key"},
		{"under the roots of another", good, Resigning{Policy: h.policy(1), Signers: []crypto.Signer{young}, Roots: foreign.files}, "not in the chain"},
		{"by nobody", good, Resigning{Policy: h.policy(1)}, "nobody signs"},
		{"twice by one key", good, Resigning{Policy: h.policy(1), Signers: []crypto.Signer{old, old}}, "sign twice"},
		{"trusting nobody", good, Resigning{Signers: []crypto.Signer{old}}, "no key is trusted"},
		{"T-47 by seventeen", bytesOf(t, specOf(100, old)), seventeen, "at most 16"},
		{"T-47 by one more than sixteen", bytesOf(t, specOf(100, full...)), Resigning{Policy: trusting(t, publics(full)...), Signers: []crypto.Signer{old}, Add: true}, "at most 16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := put(t, c.b)
			_, err := Resign(ctx, path, path, c.r)
			refused(t, err, c.text)
			if got := must[[]byte](t)(os.ReadFile(path)); !bytes.Equal(got, c.b) {
				t.Error("the file is changed")
			}
			if es := must[[]os.DirEntry](t)(os.ReadDir(filepath.Dir(path))); len(es) != 1 {
				t.Errorf("%d files are left", len(es))
			}
		})
	}
	path := put(t, good)
	if _, err := Resign(cancelled, path, path, Resigning{Policy: h.policy(1), Signers: []crypto.Signer{old}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Resign(ctx, filepath.Join(t.TempDir(), "none"), path, Resigning{}); fault.KindOf(err) != fault.Failed || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Resign(ctx, filepath.Join(path, "..", "gone", "b"), path, Resigning{}); err == nil {
		t.Error("a folder that is not there")
	}
}

func publics(signers []crypto.Signer) (out []crypto.PublicKey) {
	for _, s := range signers {
		out = append(out, s.Public())
	}
	return out
}
