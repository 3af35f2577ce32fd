package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Stored verifies again, under policy, the bundle d that lies complete in the
// store, and says what it holds. Signatures, manifests and declarations are
// hashed again; of other blobs it is seen that they are there in full size. A
// bundle that is not there whole is a fault of kind Failed, with the remedy to
// read it again.
func Stored(ctx context.Context, store *content.Store, d digest.Digest, policy *trust.Policy) (*Info, error) {
	if !canonical.Digest(d) {
		return nil, fault.Refusedf("cannot open bundle %q: it is no SHA-256 digest", d)
	}
	with, ok, err := store.Marked(d)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, incomplete(d, "it is not marked complete")
	}
	info, err := stored(ctx, store, d, with, policy)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, incomplete(d, err.Error())
	}
	return info, err
}

func incomplete(d digest.Digest, why string) error {
	return fault.Failedf("cannot open bundle %s: %s", d, why).Hint("apply its file again")
}

func stored(ctx context.Context, store *content.Store, d digest.Digest, with []v1.Descriptor, policy *trust.Policy) (*Info, error) {
	index, err := store.Read(d, maxIndex)
	if err != nil {
		return nil, err
	}
	subject := v1.Descriptor{MediaType: v1.MediaTypeImageIndex, Digest: d, Size: int64(len(index))}
	roots, signatures, err := beside(store, subject, with)
	if err != nil {
		return nil, err
	}
	x, info, err := decide(d, index, roots, signatures, policy)
	if err != nil {
		return nil, err
	}
	t, err := newTree(x)
	if err != nil {
		return nil, err
	}
	for {
		m, ok := t.next()
		if !ok {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := store.Read(m.Digest, m.Size)
		if err != nil {
			return nil, err
		}
		if err := t.read(m, b); err != nil {
			return nil, err
		}
	}
	blobs, err := t.done()
	if err != nil {
		return nil, err
	}
	for _, b := range blobs {
		if !store.Has(b.Digest, b.Size) {
			return nil, incomplete(d, fmt.Sprintf("blob %s is not there", b.Digest))
		}
		if e, ok := t.expansions[b.Digest]; ok && !store.Has(e.to, e.size) {
			return nil, incomplete(d, fmt.Sprintf("%s, the content of %s, is not there", e.to, b.Digest))
		}
	}
	t.tell(info)
	info.store = store
	return info, nil
}

// beside reads the release roots and signatures that were marked with a bundle.
func beside(store *content.Store, subject v1.Descriptor, with []v1.Descriptor) (roots, signatures [][]byte, err error) {
	for _, w := range with {
		if w.ArtifactType != TypeRoot && w.ArtifactType != trust.MediaType {
			continue // the name of an image
		}
		b, err := store.Read(w.Digest, maxHeadManifest)
		if err != nil {
			return nil, nil, err
		}
		layers := make([]v1.Descriptor, 1)
		if w.ArtifactType == TypeRoot {
			layers, err = parseRoots(b, subject)
		} else {
			layers[0], err = parseSignature(b, subject)
		}
		if err != nil {
			return nil, nil, err
		}
		for _, l := range layers {
			b, err := store.Read(l.Digest, l.Size)
			if err != nil {
				return nil, nil, err
			}
			if w.ArtifactType == TypeRoot {
				roots = append(roots, b)
			} else {
				signatures = append(signatures, b)
			}
		}
	}
	return roots, signatures, nil
}
