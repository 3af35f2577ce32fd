// Package signing is who signs a release: the release key for files and
// bundles, the package key for what pacman fetches, and the chain of roots that
// names both.
//
// Where the secret keys are not, the signatures of a release that is already
// there take their place (Again): whoever has no key can then make each file of
// it anew, signature included, as long as it has the same bytes. A signature
// that covers anything else cannot be had.
package signing

import (
	"crypto"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Signer signs what a release consists of.
type Signer struct {
	// Key is a release key. An *ecdsa.PrivateKey gives the same signature each
	// time.
	Key crypto.Signer
	// Packages signs for pacman; nil where nothing is packed for it.
	Packages Packages
	// Roots is the chain of release roots, oldest first, and Policy what the last
	// one says.
	Roots  [][]byte
	Policy *trust.Policy
}

// Packages makes detached OpenPGP signatures, dated date or later.
type Packages interface {
	Sign(message io.Reader, date time.Time) ([]byte, error)
}

// New refuses a key that the newest root does not name for releases: what it
// signs nobody would accept.
func New(key crypto.Signer, roots [][]byte) (*Signer, error) {
	policy, err := inForce(roots)
	if err != nil {
		return nil, err
	}
	if err := policy.May(key.Public(), trust.ScopeRelease); err != nil {
		return nil, fault.Refusedf("cannot use the release key: the release root does not name it: %w", err)
	}
	return &Signer{Key: key, Roots: roots, Policy: policy}, nil
}

func inForce(roots [][]byte) (*trust.Policy, error) {
	if len(roots) == 0 {
		return nil, fault.Refusedf("cannot use the release roots: there is none").Hint("give the directory that \"mesh-release keys export\" makes")
	}
	policy, err := trust.FromRoot(roots[0])
	if err == nil {
		policy, err = policy.Advance(roots[1:])
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the release roots: %w", err)
	}
	return policy, nil
}

// File signs the file at path and writes the signature beside it, where nothing but an
// older one by a key of the same chain may lie.
func (s *Signer) File(path string) (digest.Digest, error) {
	// A pipe in its place does not hold us up.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("cannot sign file: %w", err)
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return "", fault.Refusedf("cannot sign file: %q is not a regular file", path).Hint("save it to a file first: a signature lies beside one")
	}
	if err := s.mayReplace(path + trust.SignatureSuffix); err != nil {
		return "", fmt.Errorf("cannot sign %q: %w", path, err)
	}
	h := digest.SHA256.Digester()
	if _, err := io.Copy(h.Hash(), f); err != nil {
		return "", fmt.Errorf("cannot sign file: %w", err)
	}
	return h.Digest(), s.beside(path, h.Digest())
}

// beside writes the signature of d as that of the file at path.
func (s *Signer) beside(path string, d digest.Digest) error {
	b, err := trust.Sign(s.Key, d)
	if err != nil {
		return fmt.Errorf("cannot sign %q: %w", path, err)
	}
	if err := durable.WriteFile(path+trust.SignatureSuffix, b, 0o644); err != nil {
		return fmt.Errorf("cannot write the signature of %q: %w", path, err)
	}
	return nil
}

// Write puts a file in place and signs it, whatever was there. The signature comes
// first: the file without it would be taken for unsigned, the other way round is
// harmless.
func (s *Signer) Write(path string, content []byte) error {
	if err := s.beside(path, digest.FromBytes(content)); err != nil {
		return err
	}
	if err := durable.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}

// Package writes the .sig that pacman looks for beside the file at path.
func (s *Signer) Package(path string, date time.Time) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot sign package: %w", err)
	}
	defer f.Close()
	sig, err := s.Packages.Sign(f, date)
	if err != nil {
		return fmt.Errorf("cannot sign package %q: %w", filepath.Base(path), err)
	}
	return durable.WriteFile(path+trust.PackageSignatureSuffix, sig, 0o644)
}
