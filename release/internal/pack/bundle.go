package pack

import (
	"context"
	"crypto"
	"fmt"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/release/internal/recipe"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
)

// Ears are those of who makes a bundle; each may be nil.
type Ears struct {
	// Progress is told as the contents are "hashing", and then what bundle.Build
	// does.
	Progress bundle.Told
	// Note is told what a person should know.
	Note func(text string)
}

// Bundle builds the bundle of a filled recipe. Its counter is its time as well:
// nothing of a bundle may depend on when it was built.
func Bundle(ctx context.Context, s *signing.Signer, r *recipe.Recipe, counter uint64, out string, ears Ears) (*bundle.Info, error) {
	spec, err := specOf(ctx, r, counter, s.Policy, ears)
	if err != nil {
		return nil, err
	}
	spec.Roots = s.Roots
	spec.Signers = []crypto.Signer{s.Key}
	spec.Progress = ears.Progress
	return bundle.Build(ctx, out, spec)
}

// PreviewBundle says what Bundle would make of a filled recipe. Nothing is signed,
// and the layers of images are not read.
func PreviewBundle(ctx context.Context, r *recipe.Recipe, counter uint64, ears Ears) (*bundle.Info, error) {
	spec, err := specOf(ctx, r, counter, nil, ears)
	if err != nil {
		return nil, err
	}
	info, err := bundle.Preview(spec)
	if err != nil {
		return nil, fmt.Errorf("cannot build bundle: %w", err)
	}
	if len(spec.Images) > 0 && ears.Note != nil {
		ears.Note("the layers of images were not read: whether each has its digest is seen when the bundle is made")
	}
	return info, nil
}

func specOf(ctx context.Context, r *recipe.Recipe, counter uint64, policy *trust.Policy, ears Ears) (bundle.Spec, error) {
	if err := CheckCounter(counter); err != nil {
		return bundle.Spec{}, err
	}
	m := recipe.Making{Counter: counter, Policy: policy, Now: clock.System.Now(), Note: ears.Note}
	if ears.Progress != nil {
		m.Progress = func(p bundle.Progress) { ears.Progress("hashing", p) }
	}
	spec, err := r.Spec(ctx, m)
	spec.Created = timeOf(counter)
	return spec, err
}
