package image

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const dockerManifestName = "manifest.json"

// maxUnpacked bounds how much a compressed layer may unpack to, in bytes.
const maxUnpacked = 64 << 30

// A saved is one image in manifest.json.
type saved struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// A dockerArchive finds blobs by digest where their archive names them otherwise.
type dockerArchive struct {
	*archive
	names map[digest.Digest]string
	made  map[digest.Digest][]byte
}

func (a *dockerArchive) open(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	if b, ok := a.made[d.Digest]; ok {
		return io.NopCloser(strings.NewReader(string(b))), nil
	}
	name, ok := a.names[d.Digest]
	if !ok {
		return nil, fault.Refusedf("it is not there")
	}
	r, _, err := a.file(name)
	return r, err
}

func readDockerArchive(ctx context.Context, ref Reference, want platform) (*Image, error) {
	tar, err := readArchive(ref.path)
	if err != nil {
		return nil, err
	}
	one, err := savedImage(tar, ref.tag)
	if err != nil {
		return nil, err
	}
	a := &dockerArchive{archive: tar, names: map[digest.Digest]string{}, made: map[digest.Digest][]byte{}}
	d, err := a.makeManifest(ctx, one)
	if err != nil {
		return nil, err
	}
	return pick(ctx, a, []v1.Descriptor{d}, want)
}

// savedImage returns the image that a name and tag mean.
func savedImage(a *archive, tag string) (saved, error) {
	b, err := contentOf(a, dockerManifestName)
	if err != nil {
		return saved{}, fault.Refusedf("it is no archive of \"docker save\": %w", err)
	}
	var all []saved
	if err := parse(b, &all); err != nil {
		return saved{}, fmt.Errorf("%q: %w", dockerManifestName, err)
	}
	var there []string
	for _, s := range all {
		if slices.Contains(s.RepoTags, tag) {
			return s, nil
		}
		there = append(there, s.RepoTags...)
	}
	list := strings.Join(there, ", ")
	switch {
	case len(all) == 0:
		return saved{}, fault.Refusedf("it holds no image")
	case tag != "":
		return saved{}, fault.Refusedf("it holds no image %.128q, only: %.512s", tag, list)
	case len(all) > 1:
		return saved{}, fault.Refusedf("it holds several images: %.512s", list).Hint("say which, behind a colon")
	}
	return all[0], nil
}

// makeManifest makes the manifest that the image was not saved with. It is OCI's and
// not Docker's: in an image layout skopeo 1.9 and podman 4.3 find no other by name
// (containers/image, oci/layout).
func (a *dockerArchive) makeManifest(ctx context.Context, s saved) (v1.Descriptor, error) {
	text, err := contentOf(a, s.Config)
	if err = missing(err); err != nil {
		return v1.Descriptor{}, fmt.Errorf("configuration: %w", err)
	}
	c, err := parseConfig(text)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("configuration %.128q: %w", s.Config, err)
	}
	if len(s.Layers) > maxLayers {
		return v1.Descriptor{}, fault.Refusedf("it has %d layers, at most %d are read", len(s.Layers), maxLayers)
	}
	if len(c.RootFS.DiffIDs) != len(s.Layers) {
		return v1.Descriptor{}, fault.Refusedf("%q is about %d layers, the configuration about %d", dockerManifestName, len(s.Layers), len(c.RootFS.DiffIDs))
	}
	m := v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest,
		Config:    v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: digest.FromBytes(text), Size: int64(len(text))},
	}
	a.made[m.Config.Digest] = text
	for i, name := range s.Layers {
		l, err := a.layer(ctx, name, digest.Digest(c.RootFS.DiffIDs[i]))
		if err != nil {
			return v1.Descriptor{}, fmt.Errorf("layer %.128q: %w", name, err)
		}
		a.names[l.Digest] = name
		m.Layers = append(m.Layers, l)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return v1.Descriptor{}, err
	}
	d := v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromBytes(b), Size: int64(len(b))}
	a.made[d.Digest] = b
	return d, nil
}

// missing is that manifest.json, or a link, names what the archive does not hold.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Refusedf("%w", err)
	}
	return err
}

// layer describes a layer as it lies in the archive. One that is not compressed is
// what the configuration says, and will be held to that as it is read; a compressed
// one has a digest that nobody knows yet.
func (a *dockerArchive) layer(ctx context.Context, name string, unpacked digest.Digest) (v1.Descriptor, error) {
	d := v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: unpacked}
	m, err := a.member(name)
	if err = missing(err); err != nil {
		return d, err
	}
	d.Size = m.size
	if d.Size > maxBlob {
		return d, checkLayer(d)
	}
	r, _, err := a.file(name)
	if err != nil {
		return d, err
	}
	defer r.Close()
	whole := digest.SHA256.Digester()
	content := bufio.NewReaderSize(io.TeeReader(&interruptible{ctx, r}, whole.Hash()), 256<<10)
	begin, err := content.Peek(6)
	if err != nil && err != io.EOF {
		return d, err
	}
	how := compression(begin)
	if how == "" {
		return d, nil
	}
	if err := unpack(content, how, unpacked); err != nil {
		return d, err
	}
	// What may follow the compressed content belongs to the layer as well.
	if _, err := io.Copy(io.Discard, content); err != nil {
		return d, err
	}
	d.MediaType, d.Digest = v1.MediaTypeImageLayer+"+"+how, whole.Digest()
	return d, nil
}

// unpack holds that compressed content is what it should be.
func unpack(r io.Reader, how string, want digest.Digest) error {
	var plain io.Reader
	switch how {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return fault.Refusedf("%w", err)
		}
		plain = z
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return err
		}
		defer z.Close()
		plain = z
	default:
		return fault.Refusedf("it is compressed with %s, which no engine unpacks", how)
	}
	got := digest.SHA256.Digester()
	n, err := io.Copy(got.Hash(), io.LimitReader(plain, maxUnpacked+1))
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case err != nil:
		return fault.Refusedf("cannot unpack it: %w", err)
	case n > maxUnpacked:
		return fault.Refusedf("it unpacks to more than %d bytes", int64(maxUnpacked))
	case got.Digest() != want:
		return fault.Refusedf("it unpacks to %s, not to %.80s", got.Digest(), want)
	}
	return nil
}

// interruptible is a reader that ends with its context.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}
