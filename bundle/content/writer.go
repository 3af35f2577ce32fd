package content

import (
	"context"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// A group is at most this, or one larger blob: what a kill costs the one who
// comes again.
const (
	groupBytes = 64 << 20
	groupParts = 64
)

// A Writer brings many blobs and marks them as one tree. It makes them durable
// in groups, one group while the next is being received, and holds a Lease from
// beginning to end. It is for one goroutine.
type Writer struct {
	store *Store
	lease *Lease

	group []*part
	bytes int64
	most  int64 // groupBytes, but for tests
	// committed gives the outcome of the group that is being made durable; nil
	// when there is none.
	committed chan error
}

// Writer begins to write a tree. Close ends it.
func (s *Store) Writer() (*Writer, error) {
	l, err := s.Lease()
	if err != nil {
		return nil, err
	}
	return &Writer{store: s, lease: l, most: groupBytes}, nil
}

// Put is Put of the store, but for that the blob is there only after Flush,
// Mark or Close.
func (w *Writer) Put(ctx context.Context, d digest.Digest, size int64, r io.Reader) error {
	p, err := w.store.receive(ctx, d, size, r)
	if err != nil || p == nil {
		return err
	}
	if len(w.group) > 0 && w.bytes+size > w.most {
		if err := w.commit(); err != nil {
			p.abort()
			return err
		}
	}
	w.group = append(w.group, p)
	w.bytes += size
	if w.bytes < w.most && len(w.group) < groupParts {
		return nil
	}
	return w.commit()
}

// commit waits for the group before, and begins with this one.
func (w *Writer) commit() error {
	if err := w.wait(); err != nil || len(w.group) == 0 {
		return err
	}
	group, done := w.group, make(chan error, 1)
	w.group, w.bytes, w.committed = nil, 0, done
	go func() {
		err := w.store.commit(group...)
		for _, p := range group {
			p.abort()
		}
		done <- err
	}()
	return nil
}

func (w *Writer) wait() error {
	if w.committed == nil {
		return nil
	}
	err := <-w.committed
	w.committed = nil
	return err
}

// Flush makes durable what was put.
func (w *Writer) Flush() error {
	if err := w.commit(); err != nil {
		return err
	}
	return w.wait()
}

// Mark is Mark of the store, after a Flush.
func (w *Writer) Mark(main v1.Descriptor, name string, with ...v1.Descriptor) error {
	if err := w.Flush(); err != nil {
		return err
	}
	return w.store.Mark(main, name, with...)
}

// Close keeps the blobs that were put whole, also when the tree never will be:
// who comes again goes on from there. Then it gives up the lease.
func (w *Writer) Close() error {
	err := w.Flush()
	for _, p := range w.group { // the group before it failed
		p.abort()
	}
	w.group = nil
	w.lease.Release()
	return err
}
