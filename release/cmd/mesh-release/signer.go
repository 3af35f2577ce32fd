package main

import (
	"crypto/ecdsa"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
)

// A signer is the release key and the roots that name it.
type signer struct {
	key    *ecdsa.PrivateKey
	roots  [][]byte
	policy *trust.Policy
	// packages signs for pacman; nil where nothing is packed for it.
	packages *keys.PackageKey
}

// newSigner refuses a key that the newest root does not name for releases: what
// it signs nobody would accept.
func newSigner(key *ecdsa.PrivateKey, roots [][]byte) (*signer, error) {
	policy, err := trust.FromRoot(roots[0])
	if err == nil {
		policy, err = policy.Advance(roots[1:])
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the release roots: %w", err)
	}
	s := &signer{key: key, roots: roots, policy: policy}
	probe := digest.FromString("")
	b, err := trust.Sign(key, probe)
	if err != nil {
		return nil, err
	}
	if _, err := policy.Verify(probe, [][]byte{b}, trust.ScopeRelease); err != nil {
		return nil, fault.Refusedf("cannot use the release key: the release root does not name it: %w", err)
	}
	return s, nil
}

// file signs the file at path and writes the signature beside it.
func (s *signer) file(path string) (digest.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot sign file: %w", err)
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return "", fmt.Errorf("cannot sign file: %q is not a regular file", path)
	}
	h := digest.SHA256.Digester()
	if _, err := io.Copy(h.Hash(), f); err != nil {
		return "", fmt.Errorf("cannot sign file: %w", err)
	}
	return h.Digest(), s.beside(path, h.Digest())
}

// beside writes the signature of d as that of the file at path.
func (s *signer) beside(path string, d digest.Digest) error {
	b, err := trust.Sign(s.key, d)
	if err != nil {
		return fmt.Errorf("cannot sign %q: %w", path, err)
	}
	if err := durable.WriteFile(path+trust.SignatureSuffix, b, 0o644); err != nil {
		return fmt.Errorf("cannot write the signature of %q: %w", path, err)
	}
	return nil
}

// written puts a file in place and signs it. The signature comes first: the
// file without it would be taken for unsigned, the other way round is harmless.
func (s *signer) written(dir, name string, content []byte) error {
	path := filepath.Join(dir, name)
	if err := s.beside(path, digest.FromBytes(content)); err != nil {
		return err
	}
	if err := durable.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}
