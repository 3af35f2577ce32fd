package pack

import (
	"context"
	"crypto"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/release/internal/recipe"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
)

// Bundle builds the bundle of a filled recipe. Its counter is its time as well:
// nothing of a bundle may depend on when it was built.
func Bundle(ctx context.Context, s *signing.Signer, r *recipe.Recipe, counter uint64, out string) (*bundle.Info, error) {
	spec, err := specOf(ctx, r, counter)
	if err != nil {
		return nil, err
	}
	spec.Roots = s.Roots
	spec.Signers = []crypto.Signer{s.Key}
	return bundle.Build(ctx, out, spec)
}

// PreviewBundle says what Bundle would make of a filled recipe. Nothing is signed,
// and the layers of images are not read; their members are titled by the image.
func PreviewBundle(ctx context.Context, r *recipe.Recipe, counter uint64) (*bundle.Info, error) {
	spec, err := specOf(ctx, r, counter)
	if err != nil {
		return nil, err
	}
	info, err := bundle.Preview(spec)
	if err != nil {
		return nil, fmt.Errorf("cannot build bundle: %w", err)
	}
	titles := map[digest.Digest]string{}
	for _, i := range spec.Images {
		var m v1.Manifest
		if err := json.Unmarshal(i.Manifest, &m); err != nil {
			return nil, fmt.Errorf("cannot build bundle: %w", err)
		}
		titles[m.Config.Digest] = i.Title + ", configuration"
		for n, l := range m.Layers {
			if titles[l.Digest] == "" {
				titles[l.Digest] = fmt.Sprintf("%s, layer %d of %d", i.Title, n+1, len(m.Layers))
			}
		}
	}
	for i := range info.Members {
		if m := &info.Members[i]; m.Title == "" {
			m.Title = titles[m.Digest]
		}
	}
	return info, nil
}

func specOf(ctx context.Context, r *recipe.Recipe, counter uint64) (bundle.Spec, error) {
	if err := CheckCounter(counter); err != nil {
		return bundle.Spec{}, err
	}
	spec, err := r.Spec(ctx, counter)
	spec.Created = timeOf(counter)
	return spec, err
}
