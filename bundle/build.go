package bundle

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Build writes the bundle that spec describes to path, mode 0644. The file is
// there only after it was read back whole through the reader; until then, and
// after an error, what was at path before is there, and what comes there meanwhile
// stays. Equal specs give equal
// bytes when every signer is an *ecdsa.PrivateKey. What the reader would
// refuse is refused here.
func Build(ctx context.Context, path string, spec Spec) (*Info, error) {
	info, err := build(ctx, path, spec)
	if err != nil {
		return nil, fmt.Errorf("cannot build bundle %q: %w", path, err)
	}
	return info, nil
}

func build(ctx context.Context, path string, spec Spec) (*Info, error) {
	file, err := openDestination(path, spec.Inputs...)
	if err != nil {
		return nil, err
	}
	defer file.close()
	plan, err := newPlan(spec)
	if err != nil {
		return nil, err
	}
	return plan.save(ctx, file, spec.Progress)
}

// save writes the plan to file, and reads it back.
func (p *plan) save(ctx context.Context, file *destination, told Told) (*Info, error) {
	w := bufio.NewWriterSize(file, 256<<10)
	if err := p.write(ctx, w, told.of("writing")); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	info, err := file.readBack(ctx, Options{Policy: p.policy, Progress: told.of("reading back")})
	if err != nil {
		return nil, err
	}
	return info, file.finish()
}

// A plan is a bundle that is decided on and not yet written: all that is ours
// is in memory, in the order of the file.
type plan struct {
	policy *trust.Policy
	pieces []piece
}

// A piece is one member.
type piece struct {
	name string
	size int64
	// open gives the content, whose digest is in the name.
	open func() (io.ReadCloser, error)
	// title is what its author called it; "" is what is ours.
	title string
}

func (p *plan) add(name string, b []byte) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	p.pieces = append(p.pieces, piece{name: name, size: int64(len(b)), open: open})
}

func (p *plan) addBlob(b []byte) { p.add(blobPrefix+digest.FromBytes(b).Encoded(), b) }

func newPlan(spec Spec) (*plan, error) {
	docs, err := newDocuments(spec)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	if err := p.head(spec, docs); err != nil {
		return nil, err
	}
	return p, p.body(docs)
}

// head adds all up to the signatures.
func (p *plan) head(spec Spec, docs *documents) error {
	entry := descriptor(v1.MediaTypeImageIndex, TypeBundle, docs.index)
	entry.Annotations = map[string]string{v1.AnnotationRefName: refName}
	signatures, err := sign(descriptor(v1.MediaTypeImageIndex, "", docs.index), spec.Signers)
	if err != nil {
		return err
	}
	if p.policy, err = publisher(spec); err != nil {
		return err
	}
	return p.seal(&seal{bundle: entry, index: docs.index, roots: spec.Roots, signatures: signatures, others: imageNames(&v1.Index{Manifests: docs.manifests})})
}

// seal adds a head.
func (p *plan) seal(s *seal) error {
	members, err := s.members()
	if err != nil {
		return err
	}
	for _, m := range members {
		p.add(m.name, m.bytes)
	}
	return nil
}

// body adds manifests and blobs, in the order of the tree.
func (p *plan) body(docs *documents) error {
	t, _, err := docs.tree(p.addBlob)
	if err != nil {
		return err
	}
	return p.blobs(t, func(d v1.Descriptor) (func() (io.ReadCloser, error), error) { return docs.blobs[d.Digest], nil })
}

// blobs adds the blobs of the tree, which opener says how to open. Those the head
// has are there.
func (p *plan) blobs(t *tree, opener func(v1.Descriptor) (func() (io.ReadCloser, error), error)) error {
	there := map[string]bool{}
	for _, piece := range p.pieces {
		there[piece.name] = true
	}
	titles := (&Info{Members: t.members}).titles()
	for _, b := range t.blobs {
		name := blobPrefix + b.Digest.Encoded()
		if there[name] {
			continue
		}
		open, err := opener(b)
		if err != nil {
			return err
		}
		p.pieces = append(p.pieces, piece{name, b.Size, open, titles[b.Digest]})
	}
	return nil
}

// write tells told, if set, how far it is.
func (p *plan) write(ctx context.Context, w io.Writer, told func(Progress)) error {
	var at Progress
	for _, piece := range p.pieces {
		at.Total += piece.size
	}
	more := func(n int) {
		at.Done += int64(n)
		if told != nil {
			told(at)
		}
	}
	for _, piece := range p.pieces {
		at.Title = cmp.Or(piece.title, piece.name)
		if err := piece.write(ctx, w, more); err != nil {
			return fmt.Errorf("member %q: %w", piece.name, err)
		}
	}
	_, err := w.Write(make([]byte, 2*blockSize))
	return err
}

// write says of each part how many bytes more it has read.
func (p piece) write(ctx context.Context, w io.Writer, more func(n int)) error {
	head := header(p.name, p.size)
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	r, err := p.open()
	if err != nil {
		return err
	}
	defer r.Close()
	// One byte more than announced is enough to see that there is more.
	n, err := io.Copy(w, &bounded{ctx, io.LimitReader(r, p.size+1), more})
	if err != nil {
		return err
	}
	if n != p.size {
		return fault.Refusedf("its content has not the %d bytes that were announced", p.size)
	}
	_, err = w.Write(make([]byte, padding(p.size)))
	return err
}

// bounded is a reader that ends with its context.
type bounded struct {
	ctx  context.Context
	r    io.Reader
	more func(n int)
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, fmt.Errorf("interrupted: %w", err)
	}
	n, err := b.r.Read(p)
	b.more(n)
	return n, err
}
