package keys

import (
	"crypto"
	"crypto/ecdsa"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Rotation is what to make anew. More than one may be set.
type Rotation struct {
	Release, Package, Root bool
}

// Rotate makes new keys and the next release root, which names them; the root
// key that signs now signs it, and the new one too when there is one.
//
// A new release key signs from then on; the old one is still believed, until it
// is revoked. A new package key is only announced: it is in the root and the
// keyring, and signs after Promote. A new root key replaces the old one, which
// signs nothing after this root.
//
// A rotation that was killed is finished by calling it again with the same
// arguments; until the root is written the directory is what it was.
func Rotate(dir string, what Rotation, passphrase func() ([]byte, error), now time.Time) (s State, err error) {
	if what == (Rotation{}) {
		return s, fault.Usagef("cannot rotate: nothing to rotate is named").Hint("give --release, --package or --root")
	}
	err = locked(dir, func() error {
		s, err = rotate(dir, what, passphrase, now)
		return err
	})
	return s, err
}

func rotate(dir string, what Rotation, passphrase func() ([]byte, error), now time.Time) (State, error) {
	h, err := readHistory(dir)
	if err != nil {
		return State{}, err
	}
	version := h.newest().Version + 1
	if what.Package {
		if _, next, err := h.packages(); err == nil && next != nil {
			return State{}, fault.Refusedf("cannot rotate the package key: the next one, %s, was announced and does not sign yet", next.key.ID).
				Hint("ship a release with its keyring, then run \"mesh-release keys promote %s --shipped KEYRING-PACKAGE\"", fault.Word(dir))
		}
	}
	if err := unfinished(dir, version, what); err != nil {
		return State{}, err
	}
	secret, err := passphrase()
	if err != nil {
		return State{}, err
	}
	old, err := h.rootKey(secret)
	if err != nil {
		return State{}, err
	}
	keys, signers := slices.Clone(h.newest().Keys), []crypto.Signer{old}
	if what.Release {
		key, err := ensureRelease(dir, version, secret)
		if err != nil {
			return State{}, err
		}
		keys = append(keys, key)
	}
	if what.Package {
		key, err := ensurePackage(dir, version, secret, now)
		if err != nil {
			return State{}, err
		}
		keys = append(keys, key)
	}
	if what.Root {
		next, err := ensure(dir, numbered(version, RootKey), secret)
		if err != nil {
			return State{}, err
		}
		key, err := trust.NewKey(next.Public(), trust.ScopeRoot)
		if err != nil {
			return State{}, err
		}
		keys = slices.DeleteFunc(keys, func(k trust.Key) bool { return slices.Contains(k.Scope, trust.ScopeRoot) })
		keys, signers = append(keys, key), append(signers, next)
	}
	return h.commit(trust.NewRoot(h.newest(), keys), signers...)
}

// Revoke makes the next release root, by which the key id (of a release or a
// package key) never counts again. The key that signs now is refused, unless it
// is a package key whose next was announced: that one signs from then on.
func Revoke(dir, id string, passphrase func() ([]byte, error)) (s State, err error) {
	err = locked(dir, func() error {
		s, err = revoke(dir, strings.ToLower(id), passphrase)
		return err
	})
	return s, err
}

func revoke(dir, id string, passphrase func() ([]byte, error)) (State, error) {
	h, err := readHistory(dir)
	if err != nil {
		return State{}, err
	}
	if slices.Contains(h.newest().Revoked, id) {
		return h.state()
	}
	at := slices.IndexFunc(h.newest().Keys, func(k trust.Key) bool { return k.ID == id })
	if at < 0 {
		return State{}, fault.Refusedf("cannot revoke key %q: release root %d does not name it", id, h.newest().Version)
	}
	key := h.newest().Keys[at]
	flag, err := h.needed(key)
	if err != nil {
		return State{}, err
	}
	if flag != "" {
		return State{}, fault.Refusedf("cannot revoke key %s: it signs now, and there is no other", id).
			Hint("make one first: \"mesh-release keys rotate %s %s\"", fault.Word(dir), flag)
	}
	if err := unfinished(dir, h.newest().Version+1, Rotation{}); err != nil {
		return State{}, err
	}
	ids, err := key.Fingerprints()
	if err != nil {
		return State{}, err
	}
	secret, err := passphrase()
	if err != nil {
		return State{}, err
	}
	signer, err := h.rootKey(secret)
	if err != nil {
		return State{}, err
	}
	return h.commit(trust.NewRoot(h.newest(), slices.Delete(slices.Clone(h.newest().Keys), at, at+1), ids...), signer)
}

// needed is the flag of Rotate that makes another key, when without this one
// nobody would sign.
func (h *history) needed(key trust.Key) (flag string, err error) {
	if key.OpenPGP != "" {
		now, next, err := h.packages()
		if err == nil && now.key.ID == key.ID && next == nil {
			flag = "--package"
		}
		return flag, err
	}
	root, err := h.current(trust.ScopeRoot)
	if err != nil {
		return "", err
	}
	release, err := h.current(trust.ScopeRelease)
	switch key.ID {
	case root.key.ID:
		flag = "--root"
	case release.key.ID:
		flag = "--release"
	}
	return flag, err
}

// Inspect says who signs what now.
func Inspect(dir string) (State, error) {
	h, err := readHistory(dir)
	if err != nil {
		return State{}, err
	}
	return h.state()
}

// rootKey opens the root key that the newest root names.
func (h *history) rootKey(secret []byte) (*ecdsa.PrivateKey, error) {
	now, err := h.current(trust.ScopeRoot)
	if err != nil {
		return nil, err
	}
	key, err := open(h.dir, numbered(now.version, RootKey), func() ([]byte, error) { return secret, nil })
	if err != nil {
		return nil, err
	}
	return key, named(now, key)
}

// named holds that the file of a key has the key that the root means.
func named(b birth, key *ecdsa.PrivateKey) error {
	id, err := trust.KeyID(key.Public())
	if err == nil && id != b.key.ID {
		err = fault.Refusedf("cannot use key %s: release root %d names key %s in its place", id, b.version, b.key.ID)
	}
	return err
}

// commit writes the next root: with that, and not before, all of it is true.
func (h *history) commit(root trust.Root, signers ...crypto.Signer) (State, error) {
	document, err := trust.SignRoot(root, signers...)
	if err == nil {
		_, err = h.policy.Advance([][]byte{document})
	}
	if err != nil {
		return State{}, fmt.Errorf("cannot make release root %d: %w", root.Version, err)
	}
	path := filepath.Join(h.dir, fmt.Sprintf("%d.root.json", root.Version))
	if err := durable.WriteFile(path, document, 0o644); err != nil {
		return State{}, fmt.Errorf("cannot write release root: %w", err)
	}
	return Inspect(h.dir)
}

// unfinished refuses to begin something else where a rotation was killed: its
// keys would be taken for keys that a root names.
func unfinished(dir string, version int, what Rotation) error {
	files, err := leftovers(dir, version-1)
	if err != nil {
		return fmt.Errorf("cannot use the directory of keys: %w", err)
	}
	mine := map[string]bool{
		numbered(version, RootKey):       what.Root,
		numbered(version, ReleaseKey):    what.Release,
		numbered(version, ReleasePublic): what.Release,
		numbered(version, PackageSecret): what.Package,
		numbered(version, PackagePublic): what.Package,
	}
	for _, f := range files {
		if !mine[f] {
			return fault.Refusedf("cannot go on: %q is of a rotation that did not end", filepath.Join(dir, f)).
				Hint("run that rotation again to finish it, or move the file away")
		}
	}
	return nil
}

// flock takes the lock of flock(2), which ends with the process, or fails.
func flock(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }
