package image

import (
	"context"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A platform is what an image is made for.
type platform struct{ os, architecture, variant string }

func (p platform) String() string {
	s := p.os + "/" + p.architecture
	if p.variant != "" {
		s += "/" + p.variant
	}
	return s
}

// base are the variants that every machine of an architecture can run.
var base = map[string]string{"amd64": "v1", "arm64": "v8"}

// platformOf is what images call a machine of an architecture.
func platformOf(architecture string) (platform, error) {
	for goarch := range base {
		if bundle.Architecture(goarch) == architecture {
			return platform{os: "linux", architecture: goarch}, nil
		}
	}
	return platform{}, fault.Refusedf("no images are for %q", architecture)
}

// runs reports whether every machine of platform p runs what is made for other.
func (p platform) runs(other platform) bool {
	return other.os == p.os && other.architecture == p.architecture &&
		(other.variant == "" || other.variant == base[p.architecture])
}

// The bounds of an index, with all that are nested in it.
const (
	maxDepth     = 4
	maxManifests = 1024
)

// A picking finds the one image for a platform.
type picking struct {
	from blobs
	want platform
	seen map[digest.Digest]bool
	// found is what fits, and others what does not.
	found  []*Image
	others []string
}

// pick returns the one image that the descriptors name, or that an index they name
// holds for the wanted platform.
func pick(ctx context.Context, from blobs, entries []v1.Descriptor, want platform) (*Image, error) {
	p := &picking{from: from, want: want, seen: map[digest.Digest]bool{}}
	if err := p.walk(ctx, entries, 0); err != nil {
		return nil, err
	}
	switch len(p.found) {
	case 1:
		return p.found[0], nil
	case 0:
		if len(p.others) == 0 {
			return nil, fault.Refusedf("it holds no container image")
		}
		return nil, fault.Refusedf("it is not for %s, but for %.256s", want, strings.Join(p.others, ", "))
	}
	return nil, fault.Refusedf("it holds %d images for %s, among them %s and %s", len(p.found), want, p.found[0].Digest, p.found[1].Digest)
}

func (p *picking) walk(ctx context.Context, entries []v1.Descriptor, depth int) error {
	if depth > maxDepth {
		return fault.Refusedf("its index is nested more than %d deep", maxDepth)
	}
	for _, d := range entries {
		if p.seen[d.Digest] || len(entries) > 1 && beside(d) {
			continue
		}
		if p.seen[d.Digest] = true; len(p.seen) > maxManifests {
			return fault.Refusedf("it has more than %d manifests", maxManifests)
		}
		if err := p.one(ctx, d, depth); err != nil {
			return err
		}
	}
	return nil
}

// beside reports whether an entry of an index is about the images, not one of
// them: what buildkit attests, a signature, a list of parts.
func beside(d v1.Descriptor) bool {
	return d.Annotations["vnd.docker.reference.type"] != "" || d.ArtifactType != "" ||
		d.Platform != nil && d.Platform.OS == "unknown" && d.Platform.Architecture == "unknown"
}

func (p *picking) one(ctx context.Context, d v1.Descriptor, depth int) error {
	if isIndex(d.MediaType) {
		b, err := document(ctx, p.from, d)
		if err != nil {
			return fmt.Errorf("index: %w", err)
		}
		var x v1.Index
		if err := parse(b, &x); err != nil {
			return fmt.Errorf("index %s: %w", d.Digest, err)
		}
		if x.MediaType != "" && x.MediaType != d.MediaType {
			return fault.Refusedf("index %s: its type is %.128q, not %q", d.Digest, x.MediaType, d.MediaType)
		}
		return p.walk(ctx, x.Manifests, depth+1)
	}
	// Of many, only those are read that can be meant. What the descriptor says is
	// not believed: the image is asked itself.
	if d.Platform != nil {
		if said := (platform{d.Platform.OS, d.Platform.Architecture, d.Platform.Variant}); !p.want.runs(said) {
			p.others = append(p.others, said.String())
			return nil
		}
	}
	i, is, err := open(ctx, p.from, d)
	if err != nil {
		return err
	}
	if !p.want.runs(is) {
		if d.Platform != nil {
			return fault.Refusedf("%s is said to be for %s, but is for %s", d.Digest, p.want, is)
		}
		p.others = append(p.others, is.String())
		return nil
	}
	p.found = append(p.found, i)
	return nil
}
