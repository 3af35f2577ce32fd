package bundle

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Options says how a bundle is read.
type Options struct {
	// Policy decides whose signature counts; it is required.
	Policy *trust.Policy
	// Admit, if set, is asked after the signature was verified and before
	// anything is written: counter, architecture and version are decided
	// there. Its error ends the reading and is returned as it is.
	Admit func(*Info) error
	// Store takes the content; nil verifies only.
	Store *content.Store
	// Progress, if set, is called as content is read, from the same goroutine.
	Progress func(Progress)
}

// Progress is how far a reading is.
type Progress struct {
	// Title names the member that is being read, or is its digest.
	Title string
	// Done and Total are bytes of content.
	Done, Total int64
}

// Read reads a bundle from r, a file or a pipe, to its end. Every error about
// the bundle itself is a fault of kind Refused; one of r, of the store or of
// ctx is not. After any error the store holds no completion mark for the
// bundle, and whatever blobs it holds are whole; read again, it goes on.
//
// Blobs that are in the store are passed over, and written no second time. A
// read of r that blocks is not ended by ctx.
func Read(ctx context.Context, r io.Reader, opts Options) (*Info, error) {
	return run(ctx, r, opts, stateDone)
}

// Inspect reads a bundle as far as its manifests: what it holds and who signed
// it, not whether the content arrived whole.
func Inspect(ctx context.Context, r io.Reader, policy *trust.Policy) (*Info, error) {
	return run(ctx, r, Options{Policy: policy}, stateBlobs)
}

// The states of a reading, named for what is read next.
type state int

const (
	stateLayout state = iota
	statePointers
	stateIndex
	stateHead
	stateManifests
	stateBlobs
	stateEnd
	stateDone
)

// A reading is one bundle being read.
type reading struct {
	opts Options
	tar  *tarReader

	pointers *pointers
	index    []byte // the bytes of D
	tree     *tree
	info     *Info

	// kept are the head's and the manifests' members: in memory, in order,
	// until there is room for all.
	kept [][]byte
	// received holds what was read, to tell a duplicate from a stranger.
	received map[digest.Digest]int64
	buffer   []byte
	// writer brings the content into the store; nil until there is any.
	writer *content.Writer
}

func run(ctx context.Context, r io.Reader, opts Options, until state) (*Info, error) {
	d := &reading{opts: opts, tar: newTarReader(ctx, r), received: map[digest.Digest]int64{}}
	err := d.walk(ctx, until)
	if d.writer != nil {
		// What came whole is kept, whatever the outcome.
		if cerr := d.writer.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return nil, err
	}
	return d.info, nil
}

func (d *reading) walk(ctx context.Context, until state) (err error) {
	for s := stateLayout; s != until; {
		if s, err = d.step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (d *reading) step(ctx context.Context, s state) (state, error) {
	switch s {
	case stateLayout:
		return statePointers, d.readLayout()
	case statePointers:
		return stateIndex, d.readPointers()
	case stateIndex:
		return stateHead, d.readIndex()
	case stateHead:
		return stateManifests, d.readHead()
	case stateManifests:
		return stateBlobs, d.readManifests()
	case stateBlobs:
		return stateEnd, d.readBlobs(ctx)
	case stateEnd:
		return stateDone, d.readEnd()
	}
	return s, fmt.Errorf("internal error: no state %d", s)
}

func (d *reading) readLayout() error {
	b, err := d.named(layoutName, int64(len(layoutBytes)))
	if err == nil && string(b) != layoutBytes {
		err = refuse("not canonical: member %q", layoutName)
	}
	return err
}

func (d *reading) readPointers() error {
	b, err := d.named(indexName, maxIndex)
	if err != nil {
		return err
	}
	d.pointers, err = parsePointers(b)
	return err
}

// named reads one of the two members that are no blobs.
func (d *reading) named(name string, max int64) ([]byte, error) {
	got, size, end, err := d.tar.next()
	switch {
	case err != nil:
		return nil, err
	case end:
		return nil, refuse("missing member %q", name)
	case got != name:
		return nil, refuse("unexpected member %q instead of %q", clip(got), name)
	case size > max:
		return nil, refuse("member %q has %d bytes, at most %d are read", name, size, max)
	}
	return d.tar.all()
}

func (d *reading) readIndex() (err error) {
	d.index, err = d.keep(d.pointers.bundle)
	return err
}

// readHead reads all that is needed to decide, and decides.
func (d *reading) readHead() error {
	if _, err := d.keep(empty); err != nil {
		return err
	}
	var roots, signatures [][]byte
	if d.pointers.roots != nil {
		b, err := d.keep(*d.pointers.roots)
		if err != nil {
			return err
		}
		layers, err := parseRoots(b)
		if err != nil {
			return err
		}
		for _, l := range layers {
			if b, err = d.keep(l); err != nil {
				return err
			}
			roots = append(roots, b)
		}
	}
	for _, s := range d.pointers.signatures {
		b, err := d.keep(s)
		if err != nil {
			return err
		}
		layer, err := parseSignature(b, d.pointers.bundle)
		if err != nil {
			return err
		}
		if b, err = d.keep(layer); err != nil {
			return err
		}
		signatures = append(signatures, b)
	}
	index, info, err := decide(d.pointers.bundle.Digest, d.index, roots, signatures, d.opts.Policy)
	if err != nil {
		return err
	}
	d.info = info
	if d.opts.Admit != nil {
		if err := d.opts.Admit(info); err != nil {
			return err
		}
	}
	d.tree, err = newTree(index)
	return err
}

func (d *reading) readManifests() error {
	for {
		m, ok := d.tree.next()
		if !ok {
			break
		}
		b, err := d.keep(m)
		if err != nil {
			return err
		}
		if err := d.tree.read(m, b); err != nil {
			return err
		}
	}
	for _, o := range d.pointers.others {
		if m, ok := d.tree.mentioned[o.Digest]; !ok || !m.manifest || m.size != o.Size {
			return refuse("index.json: entry %s is no part of the bundle", o.Digest)
		}
	}
	if _, err := d.tree.done(); err != nil {
		return err
	}
	d.tree.tell(d.info)
	return nil
}

// readBlobs writes for the first time, after it is known that there is room.
func (d *reading) readBlobs(ctx context.Context) error {
	blobs, err := d.tree.done()
	if err != nil {
		return err
	}
	if d.opts.Store != nil {
		// From here on nothing is collected: what is there stays there.
		if d.writer, err = d.opts.Store.Writer(); err != nil {
			return err
		}
	}
	if err := d.reserve(blobs); err != nil {
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
	progress := Progress{Total: d.tree.size}
	d.tar.onRead = func(n int64) {
		progress.Done += n
		if d.opts.Progress != nil {
			d.opts.Progress(progress)
		}
	}
	titles := map[digest.Digest]string{}
	for _, m := range d.tree.members {
		if titles[m.Digest] == "" {
			titles[m.Digest] = m.Title
		}
	}
	for _, b := range blobs {
		progress.Title = titles[b.Digest]
		if progress.Title == "" {
			progress.Title = b.Digest.String()
		}
		if size, ok := d.received[b.Digest]; ok {
			// The head brought it.
			if size != b.Size {
				return refuse("%s has %d bytes, not %d", b.Digest, size, b.Size)
			}
			d.tar.onRead(b.Size)
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

// reserve holds that the store's file system has room for what is missing.
func (d *reading) reserve(blobs []v1.Descriptor) error {
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
	for _, b := range blobs {
		if !store.Has(b.Digest, b.Size) {
			needs += (b.Size + page - 1) / page * page
		}
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
			return d.tar.skip()
		}
		if err := d.writer.Put(ctx, b.Digest, b.Size, d.tar); err != nil {
			return fmt.Errorf("cannot read bundle: member %q: %w", d.tar.member, err)
		}
		// Another process may have been faster.
		return d.tar.skip()
	}
	h := digest.SHA256.Digester()
	var sink io.Writer = h.Hash()
	var declaration bytes.Buffer
	if b.MediaType == MediaTypeDeclaration {
		sink = io.MultiWriter(sink, &declaration)
	}
	if d.buffer == nil {
		d.buffer = make([]byte, 128<<10)
	}
	if _, err := io.CopyBuffer(sink, d.tar, d.buffer); err != nil {
		return err
	}
	if got := h.Digest(); got != b.Digest {
		return mismatch(d.tar.member, b.Digest, got)
	}
	if b.MediaType == MediaTypeDeclaration {
		if d.info.declarations == nil {
			d.info.declarations = map[digest.Digest][]byte{}
		}
		d.info.declarations[b.Digest] = declaration.Bytes()
	}
	return d.tar.finish()
}

func (d *reading) readEnd() error {
	name, _, end, err := d.tar.next()
	if err != nil {
		return err
	}
	if !end {
		return d.stranger(name, "the end")
	}
	if err := d.tar.end(); err != nil {
		return err
	}
	if d.opts.Store == nil {
		return nil
	}
	with := d.pointers.signatures
	if d.pointers.roots != nil {
		with = append([]v1.Descriptor{*d.pointers.roots}, with...)
	}
	return d.writer.Mark(d.pointers.bundle, d.info.refName(), with...)
}
