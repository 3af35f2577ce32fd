package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
)

// The bounds of what is walked: over them it is not known what is reachable,
// and then everything stays.
const (
	maxManifest  = 4 << 20
	maxManifests = 1 << 16
)

// A walk finds which blobs are reachable. It never guesses: a manifest that is
// not read and understood to the end is an error, since whatever is in the store
// could be under it.
type walk struct {
	store *Store
	// reached are the blobs to keep; true for one that was walked as a manifest.
	reached   map[digest.Digest]bool
	manifests int
}

// A document is an image index or an image manifest: what of either leads on.
type document struct {
	SchemaVersion int              `json:"schemaVersion"`
	Manifests     *[]v1.Descriptor `json:"manifests"`
	Config        *v1.Descriptor   `json:"config"`
	Layers        *[]v1.Descriptor `json:"layers"`
	Subject       *v1.Descriptor   `json:"subject"`
}

func (w *walk) blob(d digest.Digest) error {
	switch {
	case canonical.Digest(d):
		if _, ok := w.reached[d]; !ok {
			w.reached[d] = false
		}
	case d.Validate() != nil:
		return fmt.Errorf("%q is no digest", d)
	}
	// One of another algorithm is nothing that we could remove.
	return nil
}

// tree reaches all that is under the manifest d. Where absent is allowed, nothing
// is under d when it is not there; one below it must be.
func (w *walk) tree(ctx context.Context, d digest.Digest, absent bool) error {
	root := d
	for pending := []digest.Digest{d}; len(pending) > 0; {
		d := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if err := w.blob(d); err != nil {
			return err
		}
		if w.reached[d] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.manifests++; w.manifests > maxManifests {
			return fmt.Errorf("there are more than %d manifests", maxManifests)
		}
		doc, err := w.store.document(d)
		if absent && d == root && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("manifest %s: %w", d, err)
		}
		w.reached[d] = true
		more, err := w.follow(doc)
		if err != nil {
			return fmt.Errorf("manifest %s: %w", d, err)
		}
		pending = append(pending, more...)
	}
	return nil
}

// Within is the annotation of a compressed layer that says the digest of what is
// in it: that lies in the store beside the layer, and is kept with it.
const Within = "vnd.nox-mesh.content.digest"

// follow reaches the blobs of a document, and returns its manifests.
func (w *walk) follow(doc *document) (manifests []digest.Digest, err error) {
	if doc.Subject != nil {
		// What a signature signs is kept with it, not walked: it is a tree of
		// its own.
		if err := w.blob(doc.Subject.Digest); err != nil {
			return nil, err
		}
	}
	if doc.Manifests != nil {
		for _, m := range *doc.Manifests {
			manifests = append(manifests, m.Digest)
		}
		return manifests, nil
	}
	for _, b := range append([]v1.Descriptor{*doc.Config}, *doc.Layers...) {
		if err := w.blob(b.Digest); err != nil {
			return nil, err
		}
		if within := digest.Digest(b.Annotations[Within]); canonical.Digest(within) {
			if err := w.blob(within); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// document reads a manifest. Unlike Read it removes nothing.
func (s *Store) document(d digest.Digest) (*document, error) {
	f, err := s.Open(d)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxManifest {
		return nil, fmt.Errorf("it has more than %d bytes", maxManifest)
	}
	if got := digest.FromBytes(b); got != d {
		return nil, fmt.Errorf("digest mismatch, it holds %s", got)
	}
	var doc document
	if err := canonical.Foreign(b, &doc); err != nil {
		return nil, err
	}
	index, image := doc.Manifests != nil, doc.Config != nil && doc.Layers != nil
	if doc.SchemaVersion != 2 || index == image || index && (doc.Config != nil || doc.Layers != nil) {
		return nil, errors.New("it is neither an image index nor an image manifest")
	}
	return &doc, nil
}
