package bundle

import (
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
)

// pointers is what index.json points to. Nothing is trusted for standing there.
type pointers struct {
	bundle     v1.Descriptor
	roots      *v1.Descriptor
	signatures []v1.Descriptor
	// others must turn out to be the images of D, by their titles.
	others []v1.Descriptor
}

// subject is D as what belongs to it names it.
func (p *pointers) subject() v1.Descriptor {
	return v1.Descriptor{MediaType: p.bundle.MediaType, Digest: p.bundle.Digest, Size: p.bundle.Size}
}

func parsePointers(b []byte) (*pointers, error) {
	var x v1.Index
	if err := canonical.Unmarshal(b, &x); err != nil {
		return nil, refuse("index.json: %w", err)
	}
	if x.SchemaVersion != 2 || x.MediaType != v1.MediaTypeImageIndex || x.ArtifactType != "" || x.Subject != nil || x.Annotations != nil {
		return nil, refuse("index.json: it is not the index of an image layout")
	}
	p := &pointers{}
	seen := map[digest.Digest]bool{}
	for i, d := range x.Manifests {
		ref, named := d.Annotations[v1.AnnotationRefName]
		max := int64(maxHeadManifest)
		switch {
		case i == 0:
			max = maxIndex
			if d.MediaType != v1.MediaTypeImageIndex || d.ArtifactType != TypeBundle || ref != refName {
				return nil, refuse("index.json: its first entry is no bundle (%q, artifact type %q)", clip(ref), clip(d.ArtifactType))
			}
			p.bundle = d
		case d.ArtifactType == TypeRoot:
			if p.roots != nil || len(p.signatures) > 0 || len(p.others) > 0 || named {
				return nil, refuse("index.json: entry %d is out of order", i)
			}
			p.roots = &d
		case d.ArtifactType == trust.MediaType:
			if n := len(p.signatures); len(p.others) > 0 || named || n > 0 && d.Digest < p.signatures[n-1].Digest {
				return nil, refuse("index.json: entry %d is out of order", i)
			}
			p.signatures = append(p.signatures, d)
		default:
			max = maxManifest
			p.others = append(p.others, d)
		}
		if err := checkDescriptor(d, max); err != nil {
			return nil, err
		}
		if seen[d.Digest] {
			return nil, refuse("index.json: duplicate entry %s", d.Digest)
		}
		seen[d.Digest] = true
		if !isManifest(d.MediaType) || len(d.URLs) > 0 || d.Data != nil || d.Platform != nil || len(d.Annotations) > 1 || (len(d.Annotations) == 1) != named {
			return nil, refuse("index.json: entry %d says more than it may", i)
		}
	}
	switch {
	case len(x.Manifests) == 0:
		return nil, refuse("index.json: it has no entry")
	case len(p.signatures) > maxSignatures:
		return nil, refuse("index.json: it has %d signatures, at most %d are read", len(p.signatures), maxSignatures)
	case len(p.others) > maxManifests:
		return nil, refuse("index.json: it has %d entries", len(x.Manifests))
	}
	return p, nil
}

// parseRoots returns the descriptors of the release roots, oldest first, that came
// with subject.
func parseRoots(b []byte, subject v1.Descriptor) ([]v1.Descriptor, error) {
	m, err := parseOurs(b, TypeRoot)
	if err != nil {
		return nil, err
	}
	if !isSubject(m.Subject, subject) {
		return nil, refuse("release roots: their subject is not the bundle index %s", subject.Digest)
	}
	if m.Annotations != nil || len(m.Layers) > maxRoots {
		return nil, refuse("release roots: %d layers, at most %d are read, or annotations", len(m.Layers), maxRoots)
	}
	seen := map[digest.Digest]bool{}
	for _, l := range m.Layers {
		if l.MediaType != MediaTypeRoot || l.ArtifactType != "" || !plain(l) || seen[l.Digest] {
			return nil, refuse("release roots: layer %s is no release root, or a duplicate", clip(string(l.Digest)))
		}
		if err := checkDescriptor(l, trust.MaxRoot); err != nil {
			return nil, err
		}
		seen[l.Digest] = true
	}
	return m.Layers, nil
}

// readRoots reads the release roots that the manifest b has, oldest first.
func readRoots(b []byte, subject v1.Descriptor, get fetch) (roots [][]byte, err error) {
	layers, err := parseRoots(b, subject)
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		root, err := get(l)
		if err != nil {
			return nil, err
		}
		roots = append(roots, root)
	}
	return roots, nil
}

// isSubject says whether s is subject and says no more.
func isSubject(s *v1.Descriptor, subject v1.Descriptor) bool {
	return s != nil && s.Digest == subject.Digest && s.Size == subject.Size && s.MediaType == subject.MediaType && plain(*s)
}

// imageNames are the entries of index.json for the images in D: by these names
// other programs find them.
func imageNames(index *v1.Index) (names []v1.Descriptor) {
	for _, d := range index.Manifests {
		if isImage(d) {
			names = append(names, v1.Descriptor{
				MediaType: d.MediaType, Digest: d.Digest, Size: d.Size,
				Annotations: map[string]string{v1.AnnotationRefName: titled(d)},
			})
		}
	}
	return names
}

// checkNames holds that index.json names the images of D and nothing else, in the
// order of D and as they were signed: who takes an image by its name takes what was
// signed under it.
func (p *pointers) checkNames(index *v1.Index) error {
	want := imageNames(index)
	for i, o := range p.others {
		at := slices.IndexFunc(want, func(w v1.Descriptor) bool { return w.Digest == o.Digest })
		if at < 0 {
			return refuse("index.json: entry %s is no part of the bundle", o.Digest)
		}
		if called, signed := o.Annotations[v1.AnnotationRefName], want[at].Annotations[v1.AnnotationRefName]; called != signed {
			return refuse("index.json: image %s is called %q there, it was signed as %q", o.Digest, clip(called), signed)
		}
		if at != i {
			return refuse("index.json: image %q is out of order", want[at].Annotations[v1.AnnotationRefName])
		}
		if o.MediaType != want[at].MediaType || o.Size != want[at].Size || o.ArtifactType != "" {
			return refuse("index.json: entry %s is not as it was signed", o.Digest)
		}
	}
	if len(p.others) < len(want) {
		return refuse("index.json: image %q is missing", want[len(p.others)].Annotations[v1.AnnotationRefName])
	}
	return nil
}

// parseSignature returns the descriptor of the signature that a signature
// manifest about subject holds.
func parseSignature(b []byte, subject v1.Descriptor) (v1.Descriptor, error) {
	m, err := parseOurs(b, trust.MediaType)
	if err != nil {
		return v1.Descriptor{}, err
	}
	if !isSubject(m.Subject, subject) {
		return v1.Descriptor{}, refuse("bad signature: its subject is not the bundle index %s", subject.Digest)
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != trust.MediaType || m.Layers[0].ArtifactType != "" || !plain(m.Layers[0]) {
		return v1.Descriptor{}, refuse("bad signature: its manifest does not hold one sigstore bundle")
	}
	return m.Layers[0], checkDescriptor(m.Layers[0], trust.MaxSignature)
}

// A signature is one of D: the manifest that says so, and the sigstore bundle in it.
type signature struct{ manifest, bundle []byte }

// readSignature reads the signature that the manifest b has.
func readSignature(b []byte, subject v1.Descriptor, get fetch) (signature, error) {
	layer, err := parseSignature(b, subject)
	if err != nil {
		return signature{}, err
	}
	s, err := get(layer)
	return signature{b, s}, err
}

// decide says whether D is to be believed: the one place where it is decided,
// for a bundle that is read and for one that is stored.
func decide(d digest.Digest, index []byte, roots [][]byte, signatures []signature, policy *trust.Policy) (*v1.Index, *Info, error) {
	policy, err := policy.Advance(roots)
	if err != nil {
		return nil, nil, err
	}
	var bundles [][]byte
	for _, s := range signatures {
		bundles = append(bundles, s.bundle)
	}
	signers, err := policy.Verify(d, bundles, trust.ScopeRelease)
	if err != nil {
		return nil, nil, err
	}
	x, info, err := parseBundle(index)
	if err != nil {
		return nil, nil, publishers(err)
	}
	info.Digest, info.Signers, info.Policy = d, signers, policy
	return x, info, nil
}
