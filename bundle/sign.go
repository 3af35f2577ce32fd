package bundle

import (
	"crypto"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// sign makes for each signer the signature manifest and the signature.
func sign(subject v1.Descriptor, signers []crypto.Signer) ([]signature, error) {
	var out []signature
	seen := map[string]bool{}
	for _, key := range signers {
		id, err := trust.KeyID(key.Public())
		if err != nil {
			return nil, err
		}
		if seen[id] {
			return nil, fault.Refusedf("key %s is to sign twice", id)
		}
		seen[id] = true
		s, err := trust.Sign(key, subject.Digest)
		if err != nil {
			return nil, err
		}
		// cosign writes these two as well, and a date, which we leave out.
		m, err := ours(trust.MediaType, &subject, map[string]string{
			"dev.sigstore.bundle.content":       "dsse-envelope",
			"dev.sigstore.bundle.predicateType": trust.PredicateType,
		}, descriptor(trust.MediaType, "", s))
		if err != nil {
			return nil, err
		}
		out = append(out, signature{m, s})
	}
	return out, nil
}

// publisher is the policy that the bundle must verify under: its own roots, or
// its signers when it has none.
func publisher(spec Spec) (*trust.Policy, error) {
	if len(spec.Signers) == 0 {
		return nil, fault.Refusedf("nobody signs it")
	}
	keys := make([]crypto.PublicKey, len(spec.Signers))
	for i, s := range spec.Signers {
		keys[i] = s.Public()
	}
	if len(spec.Roots) == 0 {
		return trust.FromKeys(keys...)
	}
	p, err := trust.FromRoot(spec.Roots[0])
	if err != nil {
		return nil, err
	}
	if p, err = p.Advance(spec.Roots[1:]); err != nil {
		return nil, err
	}
	for _, k := range keys {
		if err := p.May(k, trust.ScopeRelease); err != nil {
			return nil, err
		}
	}
	return p, nil
}
