package keys

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

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

// ensure opens the private key called name, or makes it when there is none.
func ensure(dir, name string, passphrase []byte) (*ecdsa.PrivateKey, error) {
	if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
		return create(dir, name, passphrase)
	}
	return open(dir, name, func() ([]byte, error) { return passphrase, nil })
}

func ensureRelease(dir string, version int, passphrase []byte) (trust.Key, error) {
	key, err := ensure(dir, numbered(version, ReleaseKey), passphrase)
	if err != nil {
		return trust.Key{}, err
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	if err != nil {
		return trust.Key{}, err
	}
	if err := writeOnce(dir, numbered(version, ReleasePublic), public); err != nil {
		return trust.Key{}, err
	}
	return trust.NewKey(key.Public(), trust.ScopeRelease)
}

// createPackage makes one package key. What it returns is sealed: it is for its
// public half.
func createPackage(dir, name string, passphrase []byte, now time.Time) (*PackageKey, error) {
	key, err := NewPackageKey(now)
	if err != nil {
		return nil, err
	}
	text, err := key.sealed(passphrase, now)
	if err != nil {
		return nil, err
	}
	if err := durable.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		return nil, fmt.Errorf("cannot write package key: %w", err)
	}
	return key, nil
}

func ensurePackage(dir string, version int, passphrase []byte, now time.Time) (trust.Key, error) {
	name := numbered(version, PackageSecret)
	var key *PackageKey
	_, err := os.Lstat(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		key, err = createPackage(dir, name, passphrase, now)
	} else if err == nil {
		key, err = openPackage(dir, name, func() ([]byte, error) { return passphrase, nil })
	}
	if err != nil {
		return trust.Key{}, err
	}
	keyring, err := key.public()
	if err != nil {
		return trust.Key{}, err
	}
	k, err := trust.NewPackageKey(keyring)
	if err != nil {
		return trust.Key{}, err
	}
	text, err := armoredPublic(k)
	if err != nil {
		return trust.Key{}, err
	}
	return k, writeOnce(dir, numbered(version, PackagePublic), text)
}

func armoredPublic(k trust.Key) ([]byte, error) {
	keyring, err := k.Keyring()
	if err != nil {
		return nil, err
	}
	return armored(openpgp.PublicKeyType, func(w io.Writer) error {
		_, err := w.Write(keyring)
		return err
	})
}

// writeOnce writes a public file once; another one in its place is left alone.
func writeOnce(dir, name string, content []byte) error {
	path := filepath.Join(dir, name)
	there, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = durable.WriteFile(path, content, 0o644)
	case err == nil && !bytes.Equal(there, content):
		return fault.Refusedf("cannot write %q: another key is there", path).Hint("move it away")
	}
	if err != nil {
		return fmt.Errorf("cannot write public key: %w", err)
	}
	return nil
}
