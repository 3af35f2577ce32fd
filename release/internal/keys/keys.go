// Package keys is the publisher's directory of keys.
//
//	root.key            signs release roots only; kept offline, no build needs it
//	release.key         signs bundles, manifests and files
//	release.pub         its public half
//	package.secret.asc  signs packages and pacman repositories, by OpenPGP
//	package.pub.asc     its public half
//	1.root.json         the release root that says so, signed by root.key
//	N.root.json         the roots after it; what root N names anew is in files
//	                    that begin with N: 2.release.key, 3.package.secret.asc
//	package.current     which package key signs, when it is not the first
//
// The P-256 keys are in the encrypted form that cosign writes and reads, the
// package key is one that gpg imports, so either program can use the other's;
// the passphrase comes from a file, a descriptor or a terminal, never from an
// argument or a variable. The public files alone make the directory one that a
// verifier can trust.
//
// Nothing is ever overwritten but package.current. A root is written last: only
// then its keys count, so a call that is killed leaves what was, and finishes
// when it is made again. One call at a time changes a directory.
//
// A key that was named once stays trusted or is revoked; only a root key is
// dropped, by the root after it. Because pacman refuses a .sig in which one
// signature is by a key it does not know, there is never a second signature:
// the next package key is in the keyring one release before it signs, which
// Promote wants to see.
package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/guard"
)

// The files of the directory.
const (
	RootKey       = "root.key"
	ReleaseKey    = "release.key"
	ReleasePublic = "release.pub"
	FirstRoot     = "1.root.json"
	PackageSecret = "package.secret.asc"
	PackagePublic = "package.pub.asc"
	// PackageCurrent holds the fingerprint of the package key that signs.
	PackageCurrent = "package.current"
)

// maxFile bounds what is read of each of them, in bytes.
const maxFile = 64 << 10

// Init makes the keys in dir, which is new or has no release root yet, and
// returns the hex SHA-256 of the release root (its fingerprint). Called again
// after a kill it takes over what is there.
func Init(dir string, passphrase []byte, now time.Time) (fingerprint string, err error) {
	if len(passphrase) == 0 {
		return "", fault.Usagef("cannot make keys: the passphrase is empty")
	}
	if dir == "" {
		return "", fault.Usagef("cannot make keys: the directory has no name")
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make keys: %w", err)
	}
	err = locked(dir, func() error {
		fingerprint, err = initialise(dir, passphrase, now)
		return err
	})
	return fingerprint, err
}

func initialise(dir string, passphrase []byte, now time.Time) (string, error) {
	if _, err := os.Lstat(filepath.Join(dir, FirstRoot)); !errors.Is(err, fs.ErrNotExist) {
		return "", fault.Refusedf("cannot make keys: %q is there already", filepath.Join(dir, FirstRoot)).
			Hint("choose an empty directory")
	}
	root, err := ensure(dir, RootKey, passphrase)
	if err != nil {
		return "", err
	}
	rootKey, err := trust.NewKey(root.Public(), trust.ScopeRoot)
	if err != nil {
		return "", err
	}
	releaseKey, err := ensureRelease(dir, 1, passphrase)
	if err != nil {
		return "", err
	}
	packageKey, err := ensurePackage(dir, 1, passphrase, now)
	if err != nil {
		return "", err
	}
	document, err := trust.SignRoot(trust.NewRoot(nil, []trust.Key{rootKey, releaseKey, packageKey}), root)
	if err != nil {
		return "", fmt.Errorf("cannot sign release root: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, FirstRoot), document, 0o644); err != nil {
		return "", fmt.Errorf("cannot write release root: %w", err)
	}
	s, err := Inspect(dir)
	return s.Root, err
}

// Open returns the private key called name (RootKey, ReleaseKey) of dir that
// signs now. The passphrase is only asked for when there is a key to open.
func Open(dir, name string, passphrase func() ([]byte, error)) (*ecdsa.PrivateKey, error) {
	scope, ours := map[string]trust.Scope{RootKey: trust.ScopeRoot, ReleaseKey: trust.ScopeRelease}[name]
	if _, err := os.Lstat(filepath.Join(dir, FirstRoot)); !ours || errors.Is(err, fs.ErrNotExist) {
		return open(dir, name, passphrase)
	}
	h, err := readHistory(dir)
	if err != nil {
		return nil, err
	}
	now, err := h.current(scope)
	if err != nil {
		return nil, err
	}
	key, err := open(dir, numbered(now.version, name), passphrase)
	if err != nil {
		return nil, err
	}
	return key, named(now, key)
}

func open(dir, name string, passphrase func() ([]byte, error)) (*ecdsa.PrivateKey, error) {
	path := filepath.Join(dir, name)
	text, err := read(path, guard.Own)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(dir, name, "key")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != string(cryptoutils.EncryptedSigstorePrivateKeyPEMType) {
		return nil, fault.Refusedf("cannot open key: %q is not an encrypted sigstore key", path).
			Hint("\"cosign import-key-pair\" makes one of a plain key")
	}
	secret, err := passphrase()
	if err != nil {
		return nil, err
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(text, cryptoutils.StaticPasswordFunc(secret))
	if err != nil {
		return nil, fault.Refusedf("cannot open key: %q: wrong passphrase, or the file is damaged", path).
			Hint("give the passphrase of \"mesh-release keys init\", or restore the file")
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok || ec.Curve != elliptic.P256() {
		return nil, fault.Refusedf("cannot open key: %q is not an ECDSA P-256 key", path)
	}
	return ec, nil
}

// Roots returns the chain of release roots in dir, oldest first. It refuses a
// directory, and a root, that others may write: what they put there would go out
// in every tarball, signed.
func Roots(dir string) ([][]byte, error) {
	var roots [][]byte
	for n := 1; ; n++ {
		b, err := read(filepath.Join(dir, fmt.Sprintf("%d.root.json", n)), guard.Own)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read release root: %w", err)
		}
		roots = append(roots, b)
	}
	if len(roots) == 0 {
		return nil, noRoot(dir)
	}
	fi, err := os.Stat(dir)
	if err == nil {
		err = guard.Own(dir, fi)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read release root: %w", err)
	}
	return roots, nil
}

// noRoot is the fault of a directory without its first root. Where there are keys
// another root is the wrong remedy as soon as a machine trusts the first.
func noRoot(dir string) error {
	f := fault.Failedf("cannot read release root: there is no %q in %q", FirstRoot, dir)
	if _, err := os.Lstat(filepath.Join(dir, ReleaseKey)); err == nil {
		return f.Hint("restore it: each tarball has it; if nothing was released, \"mesh-release keys init %s\" makes it", fault.Word(dir))
	}
	return f.Hint("make keys with \"mesh-release keys init %s\"", fault.Word(dir))
}

// missing is the fault of a private key that is not there. "keys init" makes none
// where there is a root.
func missing(dir, name, what string) error {
	f := fault.Failedf("cannot open %s: %q is not there", what, filepath.Join(dir, name))
	if _, err := os.Lstat(filepath.Join(dir, FirstRoot)); err != nil {
		return f.Hint("make keys with \"mesh-release keys init %s\"", fault.Word(dir))
	}
	switch {
	case strings.HasSuffix(name, ReleaseKey):
		return f.Hint("restore it, or make another with \"mesh-release keys rotate %s --release\"", fault.Word(dir))
	case strings.HasSuffix(name, PackageSecret):
		return f.Hint("restore it, or make another with \"mesh-release keys rotate %s --package\"", fault.Word(dir))
	}
	return f.Hint("bring it from where it is kept offline")
}

// read reads a file of the directory that passes the tests. A pipe in its place
// does not hold us up.
func read(path string, tests ...func(string, fs.FileInfo) error) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", path)
	}
	for _, test := range tests {
		if err == nil {
			err = test(path, fi)
		}
	}
	if err != nil {
		return nil, err
	}
	return readBounded(f, path)
}

func readBounded(f io.Reader, name string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%q has more than %d bytes", name, maxFile)
	}
	return b, err
}
