package signing

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"io"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Again signs with the signatures of a release that is there, for whoever has no
// key: it can give no other. dir is the directory of the release, files the names
// of its files; roots the chain that is trusted.
func Again(dir string, files []string, roots [][]byte) (*Signer, error) {
	policy, err := inForce(roots)
	if err != nil {
		return nil, err
	}
	found, err := collect(dir, files)
	if err != nil {
		return nil, err
	}
	key, err := policy.Key(found.key, trust.ScopeRelease)
	if err != nil {
		return nil, err
	}
	return &Signer{
		Key: replayed{key, found.raw}, Packages: replayedPackages{policy, found.packages}, Roots: roots, Policy: policy,
	}, nil
}

// replayed is a crypto.Signer that has the signatures and not the key.
type replayed struct {
	key *ecdsa.PublicKey
	raw [][]byte
}

func (r replayed) Public() crypto.PublicKey { return r.key }

func (r replayed) Sign(_ io.Reader, digest []byte, _ crypto.SignerOpts) ([]byte, error) {
	for _, sig := range r.raw {
		if ecdsa.VerifyASN1(r.key, digest, sig) {
			return sig, nil
		}
	}
	return nil, notCovered()
}

type replayedPackages struct {
	policy     *trust.Policy
	signatures [][]byte
}

func (r replayedPackages) Sign(message io.Reader, _ time.Time) ([]byte, error) {
	content, err := io.ReadAll(message)
	if err != nil {
		return nil, err
	}
	for _, sig := range r.signatures {
		if (Verifier{r.policy}).Verify(bytes.NewReader(content), sig) == nil {
			return sig, nil
		}
	}
	return nil, notCovered()
}

func notCovered() error {
	return fault.Failedf("it has other bytes than that of the release: no signature there covers it").
		Hint("give --keys DIR to see what differs, byte by byte")
}
