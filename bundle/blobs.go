package bundle

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// readBlobs writes for the first time, after it is known that there is room.
func (d *reading) readBlobs(ctx context.Context) error {
	if d.opts.Store != nil {
		// From here on nothing is collected: what is there stays there.
		w, err := d.opts.Store.Writer()
		if err != nil {
			return err
		}
		d.writer = w
	}
	d.unexpanded = map[digest.Digest]int64{}
	for to, size := range d.tree.expanded {
		if store := d.opts.Store; store != nil && !store.Has(to, size) {
			d.unexpanded[to] = size
		}
	}
	if err := d.reserve(); err != nil {
		return err
	}
	if d.opts.Store != nil {
		d.info.store = d.opts.Store
		for _, b := range d.kept {
			if err := d.writer.Put(ctx, digest.FromBytes(b), int64(len(b)), bytes.NewReader(b)); err != nil {
				return err
			}
		}
	}
	d.progress.Total = d.tree.size
	for _, size := range d.unexpanded {
		d.progress.Total += size
	}
	d.tar.onRead = d.advance
	for _, b := range d.tree.blobs {
		d.progress.Title = d.title(b.Digest)
		if size, ok := d.received[b.Digest]; ok {
			// The head brought it.
			if size != b.Size {
				return refuse("%s has %d bytes, not %d", b.Digest, size, b.Size)
			}
			d.advance(b.Size)
			continue
		}
		if err := d.expect(b); err != nil {
			return err
		}
		if err := d.blob(ctx, b); err != nil {
			return err
		}
	}
	d.tar.onRead = nil
	return nil
}

// advance tells that n bytes more are done.
func (d *reading) advance(n int64) {
	d.progress.Done += n
	if d.opts.Progress != nil {
		d.opts.Progress(d.progress)
	}
}

// pass passes over what is left of a blob that the store has.
func (d *reading) pass() error {
	d.tar.onRead = func(n int64) {
		d.progress.Here += n
		d.advance(n)
	}
	defer func() { d.tar.onRead = d.advance }()
	return d.tar.skip()
}

// title is what to call a blob.
func (d *reading) title(blob digest.Digest) string {
	return cmp.Or(d.tar.titles[blob], blob.String())
}

// reserve holds that the store's file system has room for what is missing.
func (d *reading) reserve() error {
	store := d.opts.Store
	if store == nil {
		return nil
	}
	const page = 4096
	var needs int64
	for _, b := range d.kept {
		if !store.Has(digest.FromBytes(b), int64(len(b))) {
			needs += (int64(len(b)) + page - 1) / page * page
		}
	}
	for _, b := range d.tree.blobs {
		if !store.Has(b.Digest, b.Size) {
			needs += (b.Size + page - 1) / page * page
		}
	}
	for _, size := range d.unexpanded {
		needs += (size + page - 1) / page * page
	}
	if needs == 0 {
		return nil
	}
	has, err := store.Free()
	if err != nil {
		return err
	}
	if needs > has {
		return fault.Failedf("cannot store bundle: no space (needs %d bytes, has %d)", needs, has).
			Hint("make room in %s", store.Dir())
	}
	return nil
}

// blob reads the content of a blob whose header was read.
func (d *reading) blob(ctx context.Context, b v1.Descriptor) error {
	if store := d.opts.Store; store != nil {
		if store.Has(b.Digest, b.Size) {
			return d.pass()
		}
		if err := d.writer.Put(ctx, b.Digest, b.Size, d.tar); d.tar.failed != nil {
			return d.tar.failed
		} else if err != nil {
			return fmt.Errorf("cannot read bundle: member %s: %w", d.tar.called(d.tar.member), err)
		}
		// Another process may have been faster.
		return d.pass()
	}
	return d.verify(ctx, b)
}

// verify reads the content of a blob and keeps nothing of it but a declaration.
func (d *reading) verify(ctx context.Context, b v1.Descriptor) error {
	h := digest.SHA256.Digester()
	sinks := []io.Writer{h.Hash()}
	var declaration bytes.Buffer
	if b.MediaType == MediaTypeDeclaration {
		sinks = append(sinks, &declaration)
	}
	e, compressed := d.tree.expansions[b.Digest]
	var beside *aside
	if compressed && d.tar.seeker == nil {
		beside = e.aside(ctx)
		sinks = append(sinks, beside)
	}
	if d.buffer == nil {
		d.buffer = make([]byte, 128<<10)
	}
	_, err := io.CopyBuffer(io.MultiWriter(sinks...), d.tar, d.buffer)
	var expanded error
	if beside != nil {
		expanded = beside.close()
	}
	if err != nil {
		return err
	}
	if got := h.Digest(); got != b.Digest {
		return mismatch(d.tar.called(d.tar.member), b.Digest, got)
	}
	if compressed && beside == nil {
		expanded = d.verifyAgain(ctx, e)
	}
	if expanded != nil {
		return d.wrongly(e, expanded)
	}
	if b.MediaType == MediaTypeDeclaration {
		if d.info.declarations == nil {
			d.info.declarations = map[digest.Digest][]byte{}
		}
		d.info.declarations[b.Digest] = declaration.Bytes()
	}
	return d.tar.finish()
}
