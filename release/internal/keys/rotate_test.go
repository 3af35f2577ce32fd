package keys

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// files is every file of dir by its name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		out[e.Name()] = string(content(t, dir, e.Name()))
	}
	return out
}

// rotated rotates and holds that nothing that was there has changed.
func rotated(t *testing.T, dir string, what Rotation) State {
	t.Helper()
	before := files(t, dir)
	s, err := Rotate(dir, what, given(phrase), moment.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	after := files(t, dir)
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s was overwritten", name)
		}
	}
	return s
}

// signer is the key that a signature of the directory names.
func signer(t *testing.T, dir string, policy *trust.Policy) (string, error) {
	t.Helper()
	key, err := OpenPackage(dir, given(phrase))
	if err != nil {
		t.Fatal(err)
	}
	sig, err := SignPackage(key, strings.NewReader("a package"), moment)
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.VerifyPackage(strings.NewReader("a package"), sig, trust.Times{Clock: moment.Add(2 * time.Hour)})
	return s.Key, err
}

func policyOf(t *testing.T, dir string) *trust.Policy {
	t.Helper()
	h, err := readHistory(dir)
	if err != nil {
		t.Fatal(err)
	}
	return h.policy
}

// TestPackageKeyIsTrustedOneReleaseBeforeItSigns walks through the whole life of
// a package key, and looks from a machine that stayed at the root before.
func TestPackageKeyIsTrustedOneReleaseBeforeItSigns(t *testing.T) {
	dir := initialised(t)
	first, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := signer(t, dir, policyOf(t, dir)); err != nil || got != first.Package {
		t.Fatalf("signed by %s, %v", got, err)
	}
	if _, err := Promote(dir, Promotion{Unshipped: true}); fault.KindOf(err) != fault.Refused {
		t.Errorf("promoted with none announced: %v", err)
	}

	announced := rotated(t, dir, Rotation{Package: true})
	if announced.Package != first.Package || announced.Next == "" || announced.Next == first.Package || announced.Version != 2 {
		t.Fatalf("after the announcement: %+v", announced)
	}
	shipped := policyOf(t, dir)
	if got, err := signer(t, dir, shipped); err != nil || got != first.Package {
		t.Errorf("the announced key signs already: %s, %v", got, err)
	}
	ring, err := PacmanKeyring(roots(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{strings.ToUpper(first.Package) + ":4:", strings.ToUpper(announced.Next) + ":4:"}
	slices.Sort(want)
	if string(ring.Trusted) != strings.Join(want, "\n")+"\n" || len(ring.Revoked) > 0 {
		t.Errorf("keyring: trusted %q, revoked %q", ring.Trusted, ring.Revoked)
	}
	if _, err := Rotate(dir, Rotation{Package: true}, given(phrase), moment); fault.KindOf(err) != fault.Refused {
		t.Errorf("a third key was announced: %v", err)
	}

	promoted, err := Promote(dir, Promotion{Unshipped: true})
	if err != nil || promoted.Package != announced.Next || promoted.Next != "" || promoted.Version != 2 {
		t.Fatalf("after the promotion: %+v, %v", promoted, err)
	}
	if got, err := signer(t, dir, shipped); err != nil || got != announced.Next {
		t.Errorf("a machine with the release before refuses it: %s, %v", got, err)
	}
	if _, err := Revoke(dir, promoted.Package, given(phrase)); fault.KindOf(err) != fault.Refused {
		t.Errorf("the only key that signs was revoked: %v", err)
	}

	revoked, err := Revoke(dir, strings.ToUpper(first.Package), given(phrase))
	if err != nil || revoked.Version != 3 || revoked.Package != announced.Next || !slices.Contains(revoked.Revoked, first.Package) {
		t.Fatalf("after the revocation: %+v, %v", revoked, err)
	}
	if again, err := Revoke(dir, first.Package, given(phrase)); err != nil || again.Version != 3 {
		t.Errorf("revoked again: %+v, %v", again, err)
	}
	ring, err = PacmanKeyring(roots(t, dir))
	if err != nil || string(ring.Revoked) != strings.ToUpper(first.Package)+"\n" || string(ring.Trusted) != strings.ToUpper(announced.Next)+":4:\n" {
		t.Errorf("keyring: %q, %q, %v", ring.Trusted, ring.Revoked, err)
	}
	old, err := openPackage(dir, PackageSecret, given(phrase))
	if err != nil {
		t.Fatal(err)
	}
	sig, err := SignPackage(old, strings.NewReader(""), moment)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policyOf(t, dir).VerifyPackage(strings.NewReader(""), sig, trust.Times{Clock: moment}); !errors.Is(err, trust.ErrRevokedKey) {
		t.Errorf("what the revoked key signs: %v", err)
	}
}

func roots(t *testing.T, dir string) [][]byte {
	t.Helper()
	r, err := Roots(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRevokingThePackageKeyThatSignsHandsOverToTheNext is what a publisher does
// whose key was stolen.
func TestRevokingThePackageKeyThatSignsHandsOverToTheNext(t *testing.T) {
	dir := initialised(t)
	s := rotated(t, dir, Rotation{Package: true})
	after, err := Revoke(dir, s.Package, given(phrase))
	if err != nil || after.Package != s.Next || after.Next != "" {
		t.Fatalf("%+v, %v", after, err)
	}
	if got, err := signer(t, dir, policyOf(t, dir)); err != nil || got != s.Next {
		t.Errorf("signed by %s, %v", got, err)
	}
}

func TestRotationOfReleaseAndRootKey(t *testing.T) {
	dir := initialised(t)
	machine := policyOf(t, dir)
	first, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	oldRoot, err := Open(dir, RootKey, given(phrase))
	if err != nil {
		t.Fatal(err)
	}
	s := rotated(t, dir, Rotation{Release: true, Root: true})
	if s.ReleaseKey == first.ReleaseKey || s.RootKey == first.RootKey || s.Package != first.Package {
		t.Errorf("%+v", s)
	}
	for name, want := range map[string]string{RootKey: s.RootKey, ReleaseKey: s.ReleaseKey} {
		key, err := Open(dir, name, given(phrase))
		if err != nil {
			t.Fatal(err)
		}
		if id, _ := trust.KeyID(key.Public()); id != want {
			t.Errorf("%s: key %s signs, want %s", name, id, want)
		}
	}
	machine, err = machine.Advance(roots(t, dir))
	if err != nil {
		t.Fatalf("a machine at root 1 does not follow: %v", err)
	}
	if v, _ := machine.Root(); v != 2 {
		t.Errorf("root %d", v)
	}
	// The old root key, stolen, signs nothing after this root.
	newest, err := trust.ParseRoot(roots(t, dir)[1])
	if err != nil {
		t.Fatal(err)
	}
	back, err := trust.NewKey(oldRoot.Public(), trust.ScopeRoot)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := trust.SignRoot(trust.NewRoot(newest, []trust.Key{back}), oldRoot)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := machine.Advance([][]byte{forged}); !errors.Is(err, trust.ErrBadSignature) {
		t.Errorf("the old root key still signs roots: %v", err)
	}
	// The next root is signed by the new one alone, and the old release key goes.
	gone, err := Revoke(dir, first.ReleaseKey, given(phrase))
	if err != nil || gone.Version != 3 || gone.ReleaseKey != s.ReleaseKey {
		t.Errorf("%+v, %v", gone, err)
	}
	for _, id := range []string{s.ReleaseKey, s.RootKey, strings.Repeat("0", 64)} {
		if _, err := Revoke(dir, id, given(phrase)); fault.KindOf(err) != fault.Refused {
			t.Errorf("key %s was revoked: %v", id, err)
		}
	}
}

// TestKilledRotationIsOldOrNewAndIsFinished cuts a rotation after every file it
// writes: durable.WriteFile makes each whole or not at all.
func TestKilledRotationIsOldOrNewAndIsFinished(t *testing.T) {
	dir := initialised(t)
	old, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	what := Rotation{Release: true, Package: true, Root: true}
	before := files(t, dir)
	done := rotated(t, dir, what)
	var written []string
	for name := range files(t, dir) {
		if before[name] == "" {
			written = append(written, name)
		}
	}
	order := []string{"2.release.key", "2.release.pub", "2.package.secret.asc", "2.package.pub.asc", "2.root.key", "2.root.json"}
	slices.Sort(written)
	if want := slices.Sorted(slices.Values(order)); !slices.Equal(written, want) {
		t.Fatalf("written were %v", written)
	}
	for n := range order {
		cut := t.TempDir()
		for name, text := range before {
			put(t, filepath.Join(cut, name), []byte(text))
		}
		for _, name := range order[:n] {
			put(t, filepath.Join(cut, name), content(t, dir, name))
		}
		put(t, filepath.Join(cut, ".nox-0123456789abcdef.tmp"), []byte("half a f"))
		if s, err := Inspect(cut); err != nil || s.Version != old.Version || s.Package != old.Package || s.ReleaseKey != old.ReleaseKey || s.Next != "" {
			t.Errorf("cut after %d files: %+v, %v", n, s, err)
		}
		if n > 0 {
			if _, err := Rotate(cut, Rotation{Root: n < 5}, given(phrase), moment); err == nil {
				t.Errorf("cut after %d files: another rotation was begun", n)
			}
		}
		if n%2 == 0 {
			continue // it takes a while: finished are those with half a pair
		}
		s, err := Rotate(cut, what, given(phrase), moment)
		if err != nil || s.Version != 2 || s.Next == "" {
			t.Fatalf("cut after %d files, again: %+v, %v", n, s, err)
		}
		if n >= 1 && s.ReleaseKey != done.ReleaseKey || n >= 3 && s.Next != done.Next || n >= 5 && s.RootKey != done.RootKey {
			t.Errorf("cut after %d files: keys that were made are not the ones that are named", n)
		}
	}
}

func TestKilledInitIsFinished(t *testing.T) {
	whole := initialised(t)
	dir := t.TempDir()
	for _, name := range []string{RootKey, ReleaseKey, ReleasePublic, PackageSecret} {
		put(t, filepath.Join(dir, name), content(t, whole, name))
	}
	if _, err := Init(dir, []byte("another"), moment); fault.KindOf(err) != fault.Refused {
		t.Errorf("with another passphrase: %v", err)
	}
	if _, err := Init(dir, []byte(phrase), moment.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{RootKey, ReleaseKey, ReleasePublic, PackageSecret, PackagePublic} {
		if !bytes.Equal(content(t, dir, name), content(t, whole, name)) {
			t.Errorf("%s is another", name)
		}
	}
}

func TestExportHoldsNothingSecretAndVerifies(t *testing.T) {
	dir := initialised(t)
	rotated(t, dir, Rotation{Release: true})
	out := filepath.Join(t.TempDir(), "public")
	for range 2 {
		names, err := Export(dir, out)
		if err != nil || len(names) != 7 {
			t.Fatalf("%v, %v", names, err)
		}
	}
	got := files(t, out)
	for name, text := range got {
		if strings.Contains(text, "PRIVATE") || strings.Contains(text, phrase) {
			t.Errorf("%s is secret", name)
		}
	}
	if got[ReleasePublic] != string(content(t, dir, "2.release.pub")) || got[PackagePublic] != string(content(t, dir, PackagePublic)) {
		t.Error("the public keys are not those that sign")
	}
	policy, err := trust.LoadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := policy.Root(); v != 2 {
		t.Errorf("root %d is trusted", v)
	}
	if _, err := signer(t, dir, policy); err != nil {
		t.Error(err)
	}
}

func TestOneRotationAtATime(t *testing.T) {
	dir := initialised(t)
	err := locked(dir, func() error {
		_, err := Rotate(dir, Rotation{Release: true}, given(phrase), moment)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("%v", err)
	}
}
