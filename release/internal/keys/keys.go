// Package keys is the publisher's directory of keys.
//
//	root.key       signs release roots only; kept offline, no build needs it
//	release.key    signs bundles, manifests and files
//	release.pub    its public half
//	1.root.json    the release root that says so, signed by root.key
//
// The private keys are ECDSA P-256 in the encrypted form that cosign writes and
// reads, so either program can use the other's; the passphrase comes from a
// file, a descriptor or a terminal, never from an argument or a variable. The
// public files alone make the directory one that a verifier can trust.
//
// Nothing is ever overwritten. 1.root.json is written last: a directory without
// it was not finished, and signs nothing.
package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// The files of the directory.
const (
	RootKey       = "root.key"
	ReleaseKey    = "release.key"
	ReleasePublic = "release.pub"
	FirstRoot     = "1.root.json"
)

// maxFile bounds what is read of each of them, in bytes.
const maxFile = 64 << 10

// Init makes the keys in dir, which may be there but holds none yet, and
// returns the hex SHA-256 of the release root (its fingerprint).
func Init(dir string, passphrase []byte) (fingerprint string, err error) {
	if len(passphrase) == 0 {
		return "", fault.Usagef("cannot make keys: the passphrase is empty")
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make keys: %w", err)
	}
	for _, name := range []string{RootKey, ReleaseKey, ReleasePublic, FirstRoot} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return "", fault.Refusedf("cannot make keys: %q is there already", filepath.Join(dir, name)).
				Hint("choose an empty directory")
		}
	}
	root, err := create(dir, RootKey, passphrase)
	if err != nil {
		return "", err
	}
	release, err := create(dir, ReleaseKey, passphrase)
	if err != nil {
		return "", err
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(release.Public())
	if err != nil {
		return "", err
	}
	if err := durable.WriteFile(filepath.Join(dir, ReleasePublic), public, 0o644); err != nil {
		return "", fmt.Errorf("cannot write public key: %w", err)
	}
	return firstRoot(dir, root, release)
}

// create makes one private key.
func create(dir, name string, passphrase []byte) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	sealed, err := cryptoutils.MarshalPrivateKeyToEncryptedDER(key, cryptoutils.StaticPasswordFunc(passphrase))
	if err != nil {
		return nil, fmt.Errorf("cannot encrypt key: %w", err)
	}
	text := cryptoutils.PEMEncode(cryptoutils.EncryptedSigstorePrivateKeyPEMType, sealed)
	if err := durable.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		return nil, fmt.Errorf("cannot write key: %w", err)
	}
	return key, nil
}

func firstRoot(dir string, root, release *ecdsa.PrivateKey) (string, error) {
	rootKey, err := trust.NewKey(root.Public(), trust.ScopeRoot)
	if err != nil {
		return "", err
	}
	releaseKey, err := trust.NewKey(release.Public(), trust.ScopeRelease)
	if err != nil {
		return "", err
	}
	document, err := trust.SignRoot(trust.NewRoot(nil, []trust.Key{rootKey, releaseKey}), root)
	if err != nil {
		return "", fmt.Errorf("cannot sign release root: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, FirstRoot), document, 0o644); err != nil {
		return "", fmt.Errorf("cannot write release root: %w", err)
	}
	policy, err := trust.FromRoot(document)
	if err != nil {
		return "", fmt.Errorf("cannot read back release root: %w", err)
	}
	_, fingerprint := policy.Root()
	return fingerprint, nil
}

// Open returns the private key called name (RootKey, ReleaseKey) of dir. The
// passphrase is only asked for when there is a key to open.
func Open(dir, name string, passphrase func() ([]byte, error)) (*ecdsa.PrivateKey, error) {
	path := filepath.Join(dir, name)
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Failedf("cannot open key: %q is not there", path).
			Hint("make keys with \"mesh-release keys init %s\"", dir)
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
		return nil, fault.Refusedf("cannot open key: %q: wrong passphrase, or the file is damaged", path)
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok || ec.Curve != elliptic.P256() {
		return nil, fault.Refusedf("cannot open key: %q is not an ECDSA P-256 key", path)
	}
	return ec, nil
}

// Roots returns the chain of release roots in dir, oldest first.
func Roots(dir string) ([][]byte, error) {
	var roots [][]byte
	for n := 1; ; n++ {
		b, err := read(filepath.Join(dir, fmt.Sprintf("%d.root.json", n)))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read release root: %w", err)
		}
		roots = append(roots, b)
	}
	if len(roots) == 0 {
		return nil, fault.Failedf("cannot read release root: there is no %q in %q", FirstRoot, dir).
			Hint("make keys with \"mesh-release keys init %s\"", dir)
	}
	return roots, nil
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%q has more than %d bytes", path, maxFile)
	}
	return b, err
}
