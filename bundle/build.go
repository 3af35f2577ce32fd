package bundle

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Build writes the bundle that spec describes to path, mode 0644. The file is
// there only after it was read back whole through the reader; until then, and
// after an error, what was at path before is there. Equal specs give equal
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
	plan, err := newPlan(spec)
	if err != nil {
		return nil, err
	}
	dir, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	base := filepath.Base(path)
	file, err := dir.Create(base, durable.Perm(0o644))
	if err != nil {
		return nil, err
	}
	defer file.Abort()
	w := bufio.NewWriterSize(file, 256<<10)
	if err := plan.write(ctx, w); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	info, err := readBack(ctx, filepath.Join(dir.Name(), durable.TempName(base)), plan.policy)
	if err != nil {
		return nil, fmt.Errorf("the finished file does not read back: %w", err)
	}
	return info, file.Commit()
}

func readBack(ctx context.Context, path string, policy *trust.Policy) (*Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(ctx, f, Options{Policy: policy})
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
}

func (p *plan) add(name string, b []byte) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	p.pieces = append(p.pieces, piece{name, int64(len(b)), open})
}

func (p *plan) addBlob(b []byte) { p.add(blobPrefix+digest.FromBytes(b).Encoded(), b) }

func newPlan(spec Spec) (*plan, error) {
	if err := closed(spec); err != nil {
		return nil, err
	}
	manifests, blobs, err := documents(spec)
	if err != nil {
		return nil, err
	}
	index := v1.Index{
		Versioned: versioned, MediaType: v1.MediaTypeImageIndex, ArtifactType: TypeBundle,
		Annotations: annotations(&Info{
			Name: spec.Name, Version: spec.Version, Architecture: spec.Architecture,
			Counter: spec.Counter, Created: spec.Created, MinimumHost: spec.MinimumHost,
		}),
	}
	content := map[digest.Digest][]byte{}
	for _, m := range manifests {
		content[m.descriptor.Digest] = m.bytes
		index.Manifests = append(index.Manifests, m.descriptor)
	}
	d, err := canonical.Marshal(index)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	if err := p.head(spec, d); err != nil {
		return nil, err
	}
	x, _, err := parseBundle(d)
	if err != nil {
		return nil, err
	}
	return p, p.body(x, content, blobs)
}

// A manifest is one of ours, made and described.
type manifest struct {
	descriptor v1.Descriptor
	bytes      []byte
}

// documents makes the manifests of declarations and payload, and says how to
// open each blob they mention.
func documents(spec Spec) ([]manifest, map[digest.Digest]func() (io.ReadCloser, error), error) {
	var manifests []manifest
	blobs := map[digest.Digest]func() (io.ReadCloser, error){}
	add := func(artifactType string, layers ...v1.Descriptor) error {
		b, err := ours(artifactType, nil, nil, layers...)
		if err != nil {
			return err
		}
		manifests = append(manifests, manifest{descriptor(v1.MediaTypeImageManifest, artifactType, b), b})
		return nil
	}
	for _, d := range spec.Declarations {
		l := descriptor(MediaTypeDeclaration, "", d.Bytes)
		l.Annotations = map[string]string{v1.AnnotationTitle: d.Title}
		blobs[l.Digest] = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(d.Bytes)), nil }
		if err := add(TypeDeclaration, l); err != nil {
			return nil, nil, err
		}
	}
	var layers []v1.Descriptor
	for _, b := range spec.Payload {
		l := v1.Descriptor{
			MediaType: b.MediaType, Digest: b.Digest, Size: b.Size,
			Annotations: map[string]string{v1.AnnotationTitle: b.Title},
		}
		if l.MediaType == "" {
			l.MediaType = MediaTypeFile
		}
		if blobs[b.Digest] == nil {
			blobs[b.Digest] = b.Open
		}
		layers = append(layers, l)
	}
	if len(layers) > 0 {
		if err := add(TypePayload, layers...); err != nil {
			return nil, nil, err
		}
	}
	return manifests, blobs, nil
}

// head adds all up to the signatures.
func (p *plan) head(spec Spec, d []byte) error {
	subject := descriptor(v1.MediaTypeImageIndex, "", d)
	entry := descriptor(v1.MediaTypeImageIndex, TypeBundle, d)
	entry.Annotations = map[string]string{v1.AnnotationRefName: refName}
	entries := []v1.Descriptor{entry}
	blobs := [][]byte{d, []byte("{}")}
	if len(spec.Roots) > 0 {
		var layers []v1.Descriptor
		for _, r := range spec.Roots {
			layers = append(layers, descriptor(MediaTypeRoot, "", r))
		}
		m, err := ours(TypeRoot, nil, nil, layers...)
		if err != nil {
			return err
		}
		if _, err := parseRoots(m); err != nil {
			return err
		}
		entries = append(entries, descriptor(v1.MediaTypeImageManifest, TypeRoot, m))
		blobs = append(append(blobs, m), spec.Roots...)
	}
	signatures, err := sign(subject, spec.Signers)
	if err != nil {
		return err
	}
	for _, s := range signatures {
		entries = append(entries, descriptor(v1.MediaTypeImageManifest, trust.MediaType, s[0]))
		blobs = append(blobs, s[0], s[1])
	}
	if p.policy, err = publisher(spec); err != nil {
		return err
	}
	index, err := canonical.Marshal(v1.Index{Versioned: versioned, MediaType: v1.MediaTypeImageIndex, Manifests: entries})
	if err != nil {
		return err
	}
	if _, err := parsePointers(index); err != nil {
		return err
	}
	p.add(layoutName, []byte(layoutBytes))
	p.add(indexName, index)
	for _, b := range blobs {
		p.addBlob(b)
	}
	return nil
}

// body adds manifests and blobs, in the order of the tree.
func (p *plan) body(x *v1.Index, content map[digest.Digest][]byte, blobs map[digest.Digest]func() (io.ReadCloser, error)) error {
	t, err := newTree(x)
	if err != nil {
		return err
	}
	for {
		m, ok := t.next()
		if !ok {
			break
		}
		p.addBlob(content[m.Digest])
		if err := t.read(m, content[m.Digest]); err != nil {
			return err
		}
	}
	order, err := t.done()
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, piece := range p.pieces {
		there[piece.name] = true
	}
	for _, b := range order {
		if name := blobPrefix + b.Digest.Encoded(); !there[name] {
			p.pieces = append(p.pieces, piece{name, b.Size, blobs[b.Digest]})
		}
	}
	return nil
}

func (p *plan) write(ctx context.Context, w io.Writer) error {
	for _, piece := range p.pieces {
		if err := piece.write(ctx, w); err != nil {
			return fmt.Errorf("member %q: %w", piece.name, err)
		}
	}
	_, err := w.Write(make([]byte, 2*blockSize))
	return err
}

func (p piece) write(ctx context.Context, w io.Writer) error {
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
	n, err := io.Copy(w, &bounded{ctx, io.LimitReader(r, p.size+1)})
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
	ctx context.Context
	r   io.Reader
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, fmt.Errorf("interrupted: %w", err)
	}
	return b.r.Read(p)
}
