package bundle

import (
	"cmp"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
)

// A seal is all of a head that is not signed itself: what changes when a bundle is
// signed by others, while D stays.
type seal struct {
	// bundle is the entry of D in index.json, index the bytes of D.
	bundle v1.Descriptor
	index  []byte
	// roots are the chain of release roots, oldest first; may be none.
	roots [][]byte
	// signatures: who made them first means nothing, so they are written in the order
	// of their manifests' digests.
	signatures []signature
	// others are the entries of index.json for what is under D.
	others []v1.Descriptor
}

// members writes the head: all up to the first manifest.
func (s seal) members() ([]named, error) {
	entries := []v1.Descriptor{s.bundle}
	blobs := [][]byte{s.index, []byte("{}")}
	if len(s.roots) > 0 {
		var layers []v1.Descriptor
		for _, r := range s.roots {
			layers = append(layers, descriptor(MediaTypeRoot, "", r))
		}
		subject := descriptor(s.bundle.MediaType, "", s.index)
		m, err := ours(TypeRoot, &subject, nil, layers...)
		if err != nil {
			return nil, err
		}
		if _, err := parseRoots(m, subject); err != nil {
			return nil, err
		}
		entries = append(entries, descriptor(v1.MediaTypeImageManifest, TypeRoot, m))
		blobs = append(append(blobs, m), s.roots...)
	}
	signatures := slices.SortedFunc(slices.Values(s.signatures), func(a, b signature) int {
		return cmp.Compare(digest.FromBytes(a.manifest), digest.FromBytes(b.manifest))
	})
	for _, sig := range signatures {
		entries = append(entries, descriptor(v1.MediaTypeImageManifest, trust.MediaType, sig.manifest))
		blobs = append(blobs, sig.manifest, sig.bundle)
	}
	index, err := canonical.Marshal(v1.Index{
		Versioned: versioned, MediaType: v1.MediaTypeImageIndex, Manifests: append(entries, s.others...),
	})
	if err != nil {
		return nil, err
	}
	if _, err := parsePointers(index); err != nil {
		return nil, err
	}
	out := []named{{layoutName, []byte(layoutBytes)}, {indexName, index}}
	for _, b := range blobs {
		out = append(out, named{blobPrefix + digest.FromBytes(b).Encoded(), b})
	}
	return out, nil
}

// named is a member that is in memory.
type named struct {
	name  string
	bytes []byte
}
