package container

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// An archive is an image of the content store as a tar file, made while it is
// read: there is no copy of it on the disk. It is what docker 25 and later
// save: an OCI layout with docker's own manifest.json in it. Podman, and docker
// over containerd, read the layout and keep the manifest; docker's own store
// reads manifest.json. All take the compressed layers as they are and hash what
// is in them.
type archive struct {
	parts []part
	// now is what is being read.
	now io.ReadCloser
}

// A part is one stretch of the file: bytes, or a blob that is opened when it is
// its turn.
type part struct {
	bytes []byte
	open  func() (io.ReadCloser, error)
}

// archive makes the archive of the image with that manifest, m, whose bytes are b.
func (k *Kind) archive(d digest.Digest, b []byte, m *v1.Manifest) *archive {
	a := &archive{}
	tag := imageName + ":" + d.Encoded()
	mediaType := m.MediaType
	if mediaType == "" {
		mediaType = v1.MediaTypeImageManifest
	}
	a.json(v1.ImageLayoutFile, v1.ImageLayout{Version: v1.ImageLayoutVersion})
	a.json(v1.ImageIndexFile, v1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
		Manifests: []v1.Descriptor{{
			MediaType: mediaType, Digest: d, Size: int64(len(b)),
			Annotations: map[string]string{v1.AnnotationRefName: tag, "io.containerd.image.name": tag},
		}},
	})
	layers := make([]string, len(m.Layers))
	for i, l := range m.Layers {
		layers[i] = blobPath(l.Digest)
	}
	a.json("manifest.json", []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}{{blobPath(m.Config.Digest), []string{tag}, layers}})
	a.file(blobPath(d), b)
	seen := map[digest.Digest]bool{d: true}
	for _, of := range append([]v1.Descriptor{m.Config}, m.Layers...) {
		if !seen[of.Digest] { // a layer may be there twice
			seen[of.Digest] = true
			a.blob(blobPath(of.Digest), of.Size, func() (io.ReadCloser, error) { return k.Content.Open(of.Digest) })
		}
	}
	a.parts = append(a.parts, part{bytes: make([]byte, 1024)}) // tar(5): two blocks of zeros are its end
	return a
}

func blobPath(d digest.Digest) string { return "blobs/sha256/" + d.Encoded() }

func (a *archive) json(name string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	a.file(name, b)
}

func (a *archive) file(name string, b []byte) {
	a.blob(name, int64(len(b)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil })
}

// blob puts header, content of exactly size bytes, and padding.
func (a *archive) blob(name string, size int64, open func() (io.ReadCloser, error)) {
	var header bytes.Buffer
	if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
		panic("internal error: " + err.Error()) // the names are ours, and any size can be written
	}
	a.parts = append(a.parts, part{bytes: header.Bytes()},
		part{open: func() (io.ReadCloser, error) {
			r, err := open()
			if err != nil {
				return nil, err
			}
			return &exactly{r, size}, nil
		}},
		part{bytes: make([]byte, -size&511)})
}

// Read implements io.Reader. After an error it is of no use.
func (a *archive) Read(p []byte) (int, error) {
	for {
		if a.now != nil {
			n, err := a.now.Read(p)
			if err != nil {
				_ = a.now.Close() // it was only read
				a.now = nil
			}
			if err == io.EOF {
				err = nil
			}
			if n > 0 || err != nil {
				return n, err
			}
			continue
		}
		if len(a.parts) == 0 {
			return 0, io.EOF
		}
		next := a.parts[0]
		a.parts = a.parts[1:]
		if next.open == nil {
			a.now = io.NopCloser(bytes.NewReader(next.bytes))
			continue
		}
		var err error
		if a.now, err = next.open(); err != nil {
			a.now = nil
			return 0, err
		}
	}
}

// Close lets go of what is being read.
func (a *archive) Close() error {
	if a.now == nil {
		return nil
	}
	err := a.now.Close()
	a.now, a.parts = nil, nil
	return err
}

// exactly reads size bytes; less than that is an error, and more is not read.
type exactly struct {
	io.ReadCloser
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.ReadCloser.Read(p)
	e.left -= int64(n)
	if err == io.EOF && e.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
