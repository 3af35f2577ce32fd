package bundle

import (
	"bytes"
	"io"
	"strconv"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
)

// documents are D, the manifests under it, and how to open what they mention: all
// of a bundle that is covered by its signature.
type documents struct {
	// index is D.
	index []byte
	// manifests are those of D, described as D describes them.
	manifests []v1.Descriptor
	bytes     map[digest.Digest][]byte
	blobs     map[digest.Digest]func() (io.ReadCloser, error)
}

func newDocuments(spec Spec) (*documents, error) {
	if err := closed(spec); err != nil {
		return nil, err
	}
	d := &documents{bytes: map[digest.Digest][]byte{}, blobs: map[digest.Digest]func() (io.ReadCloser, error){}}
	if err := d.declarations(spec.Declarations); err != nil {
		return nil, err
	}
	if err := d.payload(spec.Payload); err != nil {
		return nil, err
	}
	if err := d.images(spec.Images); err != nil {
		return nil, err
	}
	var err error
	d.index, err = canonical.Marshal(v1.Index{
		Versioned: versioned, MediaType: v1.MediaTypeImageIndex, ArtifactType: TypeBundle,
		Manifests: d.manifests,
		Annotations: annotations(&Info{
			Name: spec.Name, Version: spec.Version, Architecture: spec.Architecture,
			Counter: spec.Counter, Created: spec.Created, MinimumHost: spec.MinimumHost,
		}),
	})
	return d, err
}

// ours adds a manifest of ours.
func (d *documents) ours(artifactType string, layers ...v1.Descriptor) error {
	b, err := ours(artifactType, nil, nil, layers...)
	if err != nil {
		return err
	}
	d.manifest(descriptor(v1.MediaTypeImageManifest, artifactType, b), b)
	return nil
}

func (d *documents) manifest(desc v1.Descriptor, b []byte) {
	d.bytes[desc.Digest] = b
	d.manifests = append(d.manifests, desc)
}

// blob says how to open one; who said it first opens it.
func (d *documents) blob(digest digest.Digest, open func() (io.ReadCloser, error)) {
	if d.blobs[digest] == nil {
		d.blobs[digest] = open
	}
}

func (d *documents) declarations(all []Declaration) error {
	for _, one := range all {
		l := descriptor(MediaTypeDeclaration, "", one.Bytes)
		l.Annotations = map[string]string{v1.AnnotationTitle: one.Title}
		d.blob(l.Digest, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(one.Bytes)), nil })
		if err := d.ours(TypeDeclaration, l); err != nil {
			return err
		}
	}
	return nil
}

func (d *documents) payload(all []Blob) error {
	var layers []v1.Descriptor
	for _, b := range all {
		l := v1.Descriptor{
			MediaType: b.MediaType, Digest: b.Digest, Size: b.Size,
			Annotations: map[string]string{v1.AnnotationTitle: b.Title},
		}
		if l.MediaType == "" {
			l.MediaType = MediaTypeFile
		}
		if l.MediaType == MediaTypeFileZstd {
			l.Annotations[annotationContentDigest] = b.Expanded.Digest.String()
			l.Annotations[annotationContentSize] = strconv.FormatInt(b.Expanded.Size, 10)
		}
		d.blob(b.Digest, b.Open)
		layers = append(layers, l)
	}
	if len(layers) == 0 {
		return nil
	}
	return d.ours(TypePayload, layers...)
}

func (d *documents) images(all []Image) error {
	for _, i := range all {
		desc := descriptor(i.MediaType, "", i.Manifest)
		desc.Annotations = map[string]string{v1.AnnotationTitle: i.Title}
		d.manifest(desc, i.Manifest)
		var m v1.Manifest
		if err := canonical.Foreign(i.Manifest, &m); err != nil {
			return refuse("image %q: %w", i.Title, err)
		}
		for _, b := range append([]v1.Descriptor{m.Config}, m.Layers...) {
			d.blob(b.Digest, func() (io.ReadCloser, error) { return i.Open(b) })
		}
	}
	return nil
}

// tree walks D as a reader will, and says what it is of; each gets every manifest in
// the order of the file. What is wrong is the builder's own fault.
func (d *documents) tree(each func([]byte)) (*tree, *Info, error) {
	x, info, err := parseBundle(d.index)
	if err != nil {
		return nil, nil, err
	}
	t, err := newTree(x, func(err error) error { return err })
	if err != nil {
		return nil, nil, err
	}
	return t, info, t.walk(func(m v1.Descriptor) ([]byte, error) {
		each(d.bytes[m.Digest])
		return d.bytes[m.Digest], nil
	})
}

// Preview says what Build would make of spec, without a signature and without
// opening anything.
func Preview(spec Spec) (*Info, error) {
	docs, err := newDocuments(spec)
	if err != nil {
		return nil, err
	}
	t, info, err := docs.tree(func([]byte) {})
	if err != nil {
		return nil, err
	}
	info.Digest = digest.FromBytes(docs.index)
	t.tell(info)
	return info, nil
}
