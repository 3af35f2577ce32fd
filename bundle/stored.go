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
	t, err := newTree(x, publishers)
	if err != nil {
		return nil, err
	}
	err = t.walk(func(m v1.Descriptor) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return store.Read(m.Digest, m.Size)
	})
	if err != nil {
		return nil, err
	}
	for _, b := range t.blobs {
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
func beside(store *content.Store, subject v1.Descriptor, with []v1.Descriptor) (roots [][]byte, signatures []signature, err error) {
	get := func(d v1.Descriptor) ([]byte, error) { return store.Read(d.Digest, d.Size) }
	for _, w := range with {
		if w.ArtifactType != TypeRoot && w.ArtifactType != trust.MediaType {
			continue // the name of an image
		}
		m, err := store.Read(w.Digest, maxHeadManifest)
		if err != nil {
			return nil, nil, err
		}
		if w.ArtifactType == TypeRoot {
			if roots, err = readRoots(m, subject, get); err != nil {
				return nil, nil, err
			}
			continue
		}
		one, err := readSignature(m, subject, get)
		if err != nil {
			return nil, nil, err
		}
		signatures = append(signatures, one)
	}
	return roots, signatures, nil
}
