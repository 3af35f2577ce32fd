package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

var ctx = context.Background()

// files are an OCI image layout, or what else a tar can hold, by name.
type files map[string][]byte

func newLayout() files { return files{"oci-layout": []byte(`{"imageLayoutVersion": "1.0.0"}`)} }

// blob adds one and describes it.
func (f files) blob(mediaType string, b []byte) v1.Descriptor {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	f["blobs/sha256/"+d.Digest.Encoded()] = b
	return d
}

func (f files) json(mediaType string, v any) v1.Descriptor {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return f.blob(mediaType, b)
}

func (f files) index(entries ...v1.Descriptor) files {
	b, err := json.Marshal(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, Manifests: entries})
	if err != nil {
		panic(err)
	}
	f["index.json"] = b
	return f
}

func (f files) nested(entries ...v1.Descriptor) v1.Descriptor {
	return f.json(v1.MediaTypeImageIndex, v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: entries})
}

func configOf(platform string, layers int) string {
	part := append(strings.Split(platform, "/"), "")
	ids := make([]string, layers)
	for i := range ids {
		ids[i] = string(digest.FromString("unpacked"))
	}
	b, _ := json.Marshal(map[string]any{"os": part[0], "architecture": part[1], "variant": part[2], "rootfs": map[string]any{"type": "layers", "diff_ids": ids}})
	return string(b)
}

// Layers that begin as what they are said to be.
const sharedLayer = "\x1f\x8bthe layer they share"

func layerFor(platform string) string { return "\x28\xb5\x2f\xfda layer for " + platform }

// image adds one with two layers. The platform is in its configuration alone.
func (f files) image(platform string, change ...func(*v1.Manifest)) v1.Descriptor {
	m := v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest,
		Config:    f.blob(v1.MediaTypeImageConfig, []byte(configOf(platform, 2))),
		Layers: []v1.Descriptor{
			f.blob(v1.MediaTypeImageLayerGzip, []byte(sharedLayer)),
			f.blob(v1.MediaTypeImageLayerZstd, []byte(layerFor(platform))),
		},
	}
	for _, c := range change {
		c(&m)
	}
	return f.json(m.MediaType, m)
}

// on says the platform in the descriptor too.
func on(d v1.Descriptor, platform string) v1.Descriptor {
	part := append(strings.Split(platform, "/"), "")
	d.Platform = &v1.Platform{OS: part[0], Architecture: part[1], Variant: part[2]}
	return d
}

func tagged(d v1.Descriptor, tag string) v1.Descriptor {
	d.Annotations = map[string]string{v1.AnnotationRefName: tag}
	return d
}

// dir writes the files into a directory.
func (f files) dir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range f {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tar writes the files, sorted, and then the other members into a tar.
func (f files) tar(t testing.TB, others ...tar.Header) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(f[name])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		w.Write(f[name])
	}
	for _, h := range others {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func readRef(t testing.TB, ref string) (*Image, error) {
	t.Helper()
	r, err := Parse(ref)
	if err != nil {
		t.Fatal(err)
	}
	return Read(ctx, r, "x86_64")
}

func mustRead(t testing.TB, ref string) *Image {
	t.Helper()
	i, err := readRef(t, ref)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// contents opens configuration and layers and returns what is in them.
func contents(t testing.TB, i *Image) []string {
	t.Helper()
	var all []string
	for _, d := range append([]v1.Descriptor{i.Config}, i.Layers...) {
		r, err := i.Open(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		all = append(all, string(b))
	}
	return all
}

func refused(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v (kind %d), want a refusal with %q", err, fault.KindOf(err), text)
	}
}
