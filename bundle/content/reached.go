package content

import (
	"context"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
)

// Reached returns the digests of the blobs that kept needs, sorted, whether they
// are there or not: what Collect would keep for it alone. Hold a Lease, or they may
// not be there long.
func (s *Store) Reached(ctx context.Context, kept Kept) ([]digest.Digest, error) {
	w := &walk{store: s, reached: map[digest.Digest]bool{}}
	for _, d := range kept.Blobs {
		if err := w.blob(d); err != nil {
			return nil, err
		}
	}
	for _, d := range kept.Trees {
		if err := w.tree(ctx, d, true); err != nil {
			return nil, fmt.Errorf("it is not known what %s needs: %w", d, err)
		}
	}
	out := make([]digest.Digest, 0, len(w.reached))
	for d := range w.reached {
		out = append(out, d)
	}
	slices.Sort(out)
	return out, nil
}
