package keys

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ProtonMail/go-crypto/openpgp/s2k"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/guard"
)

// packageUser is the user id of a package key: what pacman and gpg print
// beside "Good signature from".
const packageUser = "nox-mesh packages"

// A PackageKey signs packages and the databases of pacman repositories.
type PackageKey struct {
	entity *openpgp.Entity
	// signing is the subkey that signs; the primary key only certifies it.
	signing *packet.PrivateKey
}

// Fingerprint is that of the primary key: 40 hex digits, lower case, the id by
// which a release root names the key.
func (k *PackageKey) Fingerprint() string { return fmt.Sprintf("%x", k.entity.PrimaryKey.Fingerprint) }

// SignPackage signs all of r (a package, or a repository's database) for
// pacman: one binary OpenPGP v4 signature of class 0x00 over SHA-512, with the
// issuer in subpackets 16 and 33, as a packet of definite length: what the file
// FILE.sig holds. It is dated date (whole seconds, of the commit), or the
// moment the key was made if that is later. Equal inputs are signed with equal
// bytes.
func SignPackage(key *PackageKey, r io.Reader, date time.Time) ([]byte, error) {
	for _, made := range []time.Time{key.entity.PrimaryKey.CreationTime, key.signing.CreationTime} {
		if date.Before(made) {
			date = made
		}
	}
	s := newSignature(packet.SigTypeBinary, key.signing, date)
	h := s.Hash.New()
	if _, err := io.Copy(h, r); err != nil {
		return nil, fmt.Errorf("cannot sign package: %w", err)
	}
	var out bytes.Buffer
	err := s.Sign(h, key.signing, plain(date))
	if err == nil {
		err = s.Serialize(&out)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot sign package: %w", err)
	}
	return out.Bytes(), nil
}

// OpenPackage returns the package key of dir that signs now. The passphrase is
// only asked for when there is a key to open.
func OpenPackage(dir string, passphrase func() ([]byte, error)) (*PackageKey, error) {
	h, err := readHistory(dir)
	if err != nil {
		return nil, err
	}
	now, _, err := h.packages()
	if err != nil {
		return nil, err
	}
	key, err := openPackage(dir, numbered(now.version, PackageSecret), passphrase)
	if err != nil {
		return nil, err
	}
	if key.Fingerprint() != now.key.ID {
		return nil, fault.Refusedf("cannot use package key %s: release root %d names key %s in its place", key.Fingerprint(), now.version, now.key.ID)
	}
	return key, nil
}

func openPackage(dir, name string, passphrase func() ([]byte, error)) (*PackageKey, error) {
	path := filepath.Join(dir, name)
	text, err := read(path, guard.Own)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(dir, name, "package key")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open package key: %w", err)
	}
	damaged := fault.Refusedf("cannot open package key: %q is not an encrypted OpenPGP key with one signing subkey", path)
	block, err := armor.Decode(bytes.NewReader(text))
	if err != nil || block.Type != openpgp.PrivateKeyType {
		return nil, damaged
	}
	e, err := openpgp.ReadEntity(packet.NewReader(block.Body))
	if err != nil || e.PrivateKey == nil || !e.PrivateKey.Encrypted || len(e.Subkeys) != 1 || e.Subkeys[0].PrivateKey == nil {
		return nil, damaged
	}
	secret, err := passphrase()
	if err != nil {
		return nil, err
	}
	if err := e.DecryptPrivateKeys(secret); err != nil {
		return nil, fault.Refusedf("cannot open package key: %q: wrong passphrase, or the file is damaged", path).
			Hint("give the passphrase of \"mesh-release keys init\", or restore the file")
	}
	return &PackageKey{entity: e, signing: e.Subkeys[0].PrivateKey}, nil
}

// NewPackageKey makes a package key: a primary key that certifies and a subkey
// that signs, both Ed25519 in the form every gpg since 2.1 reads (EdDSA,
// algorithm 22).
func NewPackageKey(now time.Time) (*PackageKey, error) {
	now = now.Truncate(time.Second)
	config := plain(now)
	config.Algorithm = packet.PubKeyAlgoEdDSA
	e, err := openpgp.NewEntity(packageUser, "", "", config)
	if err != nil {
		return nil, fmt.Errorf("cannot make package key: %w", err)
	}
	// go-crypto makes a primary key that signs as well, and a subkey for mail.
	e.Subkeys = nil
	self := newSignature(packet.SigTypePositiveCert, e.PrivateKey, now)
	yes := true
	self.IsPrimaryId, self.FlagsValid, self.FlagCertify = &yes, true, true
	if err := self.SignUserId(packageUser, e.PrimaryKey, e.PrivateKey, config); err != nil {
		return nil, fmt.Errorf("cannot make package key: %w", err)
	}
	id := e.Identities[packageUser]
	id.SelfSignature, id.Signatures = self, []*packet.Signature{self}
	if err := e.AddSigningSubkey(config); err != nil {
		return nil, fmt.Errorf("cannot make package key: %w", err)
	}
	return &PackageKey{entity: e, signing: e.Subkeys[0].PrivateKey}, nil
}

// newSignature begins a signature of key's.
func newSignature(class packet.SignatureType, key *packet.PrivateKey, date time.Time) *packet.Signature {
	return &packet.Signature{
		Version: 4, SigType: class, PubKeyAlgo: key.PubKeyAlgo, Hash: crypto.SHA512,
		CreationTime: date, IssuerKeyId: &key.KeyId,
	}
}

// plain is go-crypto's configuration without the random notation it would add
// to each signature, and with the strongest stretching of a passphrase that
// gpg reads.
func plain(now time.Time) *packet.Config {
	no := false
	return &packet.Config{
		DefaultHash: crypto.SHA512, DefaultCipher: packet.CipherAES256,
		S2KConfig: &s2k.Config{S2KMode: s2k.IteratedSaltedS2K, Hash: crypto.SHA256, S2KCount: 65011712},
		Time:      func() time.Time { return now }, NonDeterministicSignaturesViaNotation: &no,
	}
}

// sealed is the secret key, encrypted, as armored text. The key signs nothing
// after that.
func (k *PackageKey) sealed(passphrase []byte, now time.Time) ([]byte, error) {
	if err := k.entity.EncryptPrivateKeys(passphrase, plain(now)); err != nil {
		return nil, fmt.Errorf("cannot encrypt package key: %w", err)
	}
	return armored(openpgp.PrivateKeyType, func(w io.Writer) error {
		return k.entity.SerializePrivateWithoutSigning(w, nil)
	})
}

// public is the public key as a binary keyring.
func (k *PackageKey) public() ([]byte, error) {
	var b bytes.Buffer
	err := k.entity.Serialize(&b)
	return b.Bytes(), err
}

func armored(kind string, write func(io.Writer) error) ([]byte, error) {
	var b strings.Builder
	w, err := armor.Encode(&b, kind, nil)
	if err == nil {
		err = write(w)
	}
	if err == nil {
		err = w.Close()
	}
	return []byte(b.String() + "\n"), err
}
