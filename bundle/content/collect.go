package content

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// ErrInUse is in the chain of Collect's error when somebody holds a Lease. Nothing
// is wrong: the next time will do.
var ErrInUse = errors.New("someone reads a bundle into it")

// Kept is what somebody needs, besides what is marked. What is named and not
// there is no error.
type Kept struct {
	// Blobs are kept as they are.
	Blobs []digest.Digest
	// Trees are image indexes and manifests, kept with all that is under them.
	Trees []digest.Digest
	// Unmark are marked trees of the keeper's that it needs no more: their marks
	// go first, but for those that somebody names in Trees.
	Unmark []digest.Digest
}

// A Keeper says what its owner needs. It is asked after the last writer was done
// and before anything goes, so that what a writer recorded is in its answer. It
// must not take a Lease. Its error ends the collection, with nothing removed.
type Keeper func(context.Context) (Kept, error)

// Report says what a collection removed, or would remove.
type Report struct {
	// Unmarked are trees that are marked no more.
	Unmarked []digest.Digest `json:"unmarked,omitempty"`
	// Removed and Bytes are blobs that nobody needs, and the sum of their sizes.
	Removed []digest.Digest `json:"removed,omitempty"`
	Bytes   int64           `json:"bytes"`
	// Parts are what dead writers left.
	Parts     int   `json:"parts"`
	PartBytes int64 `json:"part_bytes"`
	// Blobs and BlobBytes are what stays.
	Blobs     int   `json:"blobs"`
	BlobBytes int64 `json:"blob_bytes"`
}

// Collect removes every blob that no mark and no keeper reaches, and what dead
// writers left. It does not wait: while somebody holds a Lease it ends with
// ErrInUse. When it is not certain what a mark or a tree reaches (a manifest is
// missing, damaged, too large or not understood), it removes nothing and says
// which. After an error the report tells what went before it.
func (s *Store) Collect(ctx context.Context, keepers ...Keeper) (Report, error) {
	return s.collect(ctx, false, keepers)
}

// Garbage reports what Collect would remove, and removes nothing.
func (s *Store) Garbage(ctx context.Context, keepers ...Keeper) (Report, error) {
	return s.collect(ctx, true, keepers)
}

func (s *Store) collect(ctx context.Context, dry bool, keepers []Keeper) (r Report, err error) {
	fail := func(err error) (Report, error) {
		return r, fmt.Errorf("cannot collect content store: %w", err)
	}
	l, err := s.alone()
	if err != nil {
		return fail(err)
	}
	defer l.Release()
	if r.Parts, r.PartBytes, err = s.sweep(dry); err != nil {
		return fail(err)
	}
	reached, over, err := s.reach(ctx, keepers)
	if err != nil {
		return fail(err)
	}
	if len(over) > 0 && !dry {
		if err := s.unmark(over...); err != nil {
			return fail(err)
		}
	}
	r.Unmarked = over
	if err := s.removeAllBut(ctx, reached, dry, &r); err != nil {
		return fail(err)
	}
	return r, nil
}

// reach returns what marks and keepers reach, and the marks that are over.
func (s *Store) reach(ctx context.Context, keepers []Keeper) (reached map[digest.Digest]bool, over []digest.Digest, err error) {
	aside := filepath.Join(s.dir, v1.ImageIndexFile+damagedSuffix)
	_, err = os.Lstat(aside)
	if err == nil {
		return nil, nil, fault.Failedf("its marks were damaged and lie in %q: it is not known what they kept", aside).
			Hint("read the bundles that are needed again, then remove %q", aside)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	w := &walk{store: s, reached: map[digest.Digest]bool{}}
	needed, ended := map[digest.Digest]bool{}, map[digest.Digest]bool{}
	for _, k := range keepers {
		kept, err := k(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range kept.Blobs {
			if err := w.blob(d); err != nil {
				return nil, nil, err
			}
		}
		for _, d := range kept.Trees {
			if err := w.tree(ctx, d, true); err != nil {
				return nil, nil, err
			}
			needed[d] = true
		}
		for _, d := range kept.Unmark {
			ended[d] = true
		}
	}
	index, err := s.readIndex()
	if err != nil {
		return nil, nil, err
	}
	for _, e := range index.Manifests {
		owner := e.Digest
		if with := e.Annotations[withAnnotation]; with != "" {
			owner = digest.Digest(with)
		}
		if ended[owner] && !needed[owner] {
			if owner == e.Digest {
				over = append(over, owner)
			}
			continue
		}
		if err := w.tree(ctx, e.Digest, false); err != nil {
			if ctx.Err() != nil {
				return nil, nil, err
			}
			return nil, nil, fault.Failedf("it is not known what %s keeps: %w", e.Digest, err).Hint("apply its file again")
		}
	}
	return w.reached, over, nil
}

// removeAllBut removes the blobs that are not reached. The directory is synced
// once, at the end: a name that a power cut brings back is a whole blob again,
// and goes the next time.
func (s *Store) removeAllBut(ctx context.Context, reached map[digest.Digest]bool, dry bool, r *Report) (err error) {
	dir := filepath.Join(s.dir, blobsDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err = ctx.Err(); err != nil {
			break
		}
		d := digest.NewDigestFromEncoded(digest.SHA256, e.Name())
		if !canonical.Digest(d) || e.IsDir() {
			continue // not ours
		}
		var fi fs.FileInfo
		if fi, err = e.Info(); errors.Is(err, fs.ErrNotExist) {
			err = nil
			continue // Read found it damaged
		}
		if err != nil {
			break
		}
		if _, ok := reached[d]; ok {
			r.Blobs, r.BlobBytes = r.Blobs+1, r.BlobBytes+fi.Size()
			continue
		}
		if !dry {
			if err = os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				break
			}
			err = nil
		}
		r.Removed, r.Bytes = append(r.Removed, d), r.Bytes+fi.Size()
	}
	slices.Sort(r.Removed)
	if dry || len(r.Removed) == 0 {
		return err
	}
	return errors.Join(err, durable.SyncDir(dir))
}
