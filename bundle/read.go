package bundle

import (
	"context"
	"io"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
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
	// Done and Total are bytes of content; Here are those of Done that the store
	// had already.
	Done, Total, Here int64
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

// A reading is one bundle being read.
type reading struct {
	opts Options
	tar  *tarReader

	pointers *pointers
	index    []byte // the bytes of D
	root     *v1.Index
	// roots and signatures (manifest and signature) are those in the file.
	roots      [][]byte
	signatures []signature
	tree       *tree
	info       *Info

	// kept are the head's and the manifests' members: in memory, in order,
	// until there is room for all.
	kept [][]byte
	// received holds what was read, to tell a duplicate from a stranger.
	received map[digest.Digest]int64
	buffer   []byte
	// unexpanded is what is to be expanded into the store, with its size.
	unexpanded map[digest.Digest]int64
	progress   Progress
	// writer brings the content into the store; nil until there is any.
	writer *content.Writer
}

func run(ctx context.Context, r io.Reader, opts Options, until state) (*Info, error) {
	d := &reading{opts: opts, tar: newTarReader(ctx, r), received: map[digest.Digest]int64{}}
	err := d.walk(ctx, stateLayout, until)
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

func (d *reading) readLayout() error {
	d.tar.first = true
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
		err := refuse("unexpected member %q instead of %q", clip(got), name)
		if name == layoutName {
			err = repacked(got, err)
		}
		return nil, err
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
	if d.pointers.roots != nil {
		b, err := d.keep(*d.pointers.roots)
		if err != nil {
			return err
		}
		if d.roots, err = readRoots(b, d.pointers.subject(), d.keep); err != nil {
			return err
		}
	}
	for _, s := range d.pointers.signatures {
		m, err := d.keep(s)
		if err != nil {
			return err
		}
		one, err := readSignature(m, d.pointers.subject(), d.keep)
		if err != nil {
			return err
		}
		d.signatures = append(d.signatures, one)
	}
	var err error
	d.root, d.info, err = decide(d.pointers.bundle.Digest, d.index, d.roots, d.signatures, d.opts.Policy)
	return err
}

// admit asks whoever reads.
func (d *reading) admit() error {
	if d.opts.Admit == nil {
		return nil
	}
	return d.opts.Admit(d.info)
}

func (d *reading) readManifests() (err error) {
	if d.tree, err = newTree(d.root, publishers); err != nil {
		return err
	}
	if err := d.pointers.checkNames(d.root); err != nil {
		return err
	}
	if err := d.tree.walk(d.keep); err != nil {
		return err
	}
	d.tree.tell(d.info)
	d.tar.titles = d.info.titles()
	return nil
}

func (d *reading) readEnd() error {
	name, _, end, err := d.tar.next()
	if err != nil {
		return err
	}
	if !end {
		return d.stranger(name, "the end")
	}
	return d.tar.end()
}

// mark is last: what is marked is complete.
func (d *reading) mark() error {
	if d.opts.Store == nil {
		return nil
	}
	var with []v1.Descriptor
	if d.pointers.roots != nil {
		with = append(with, *d.pointers.roots)
	}
	with = slices.Concat(with, d.pointers.signatures, d.pointers.others)
	return d.writer.Mark(d.pointers.bundle, d.info.refName(), with...)
}
