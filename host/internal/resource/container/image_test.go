package container

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	goruntime "runtime"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/content"
)

// A testImage is an image with one program, as a bundle carries it.
type testImage struct {
	blobs            [][]byte
	manifest, config digest.Digest
}

func newImage(program []byte, mark string, entrypoint ...string) (i testImage, err error) {
	var layer, packed bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, d := range []string{"data/", "tmp/", "proc/", "dev/", "sys/", "etc/"} {
		if err := w.WriteHeader(&tar.Header{Name: d, Typeflag: tar.TypeDir, Mode: 0o777}); err != nil {
			return i, err
		}
	}
	if err := w.WriteHeader(&tar.Header{Name: "program", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))}); err != nil {
		return i, err
	}
	if _, err := w.Write(program); err != nil {
		return i, err
	}
	if err := w.Close(); err != nil {
		return i, err
	}
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return i, err
	}
	if _, err := z.Write(layer.Bytes()); err != nil {
		return i, err
	}
	if err := z.Close(); err != nil {
		return i, err
	}
	add := func(mediaType string, b []byte) v1.Descriptor {
		i.blobs = append(i.blobs, b)
		return v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	}
	object := func(mediaType string, v any) v1.Descriptor {
		b, merr := json.Marshal(v)
		if merr != nil {
			err = merr
		}
		return add(mediaType, b)
	}
	c := object(v1.MediaTypeImageConfig, map[string]any{
		"architecture": goruntime.GOARCH, "os": "linux",
		"config":  map[string]any{"Entrypoint": entrypoint, "Cmd": []string{"run"}, "Env": []string{"PATH=/", "MARK=" + mark}},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{string(digest.FromBytes(layer.Bytes()))}},
		"history": []any{map[string]string{"created": "2020-01-01T00:00:00Z"}},
	})
	m := object(v1.MediaTypeImageManifest, map[string]any{
		"schemaVersion": 2, "mediaType": v1.MediaTypeImageManifest, "config": c,
		"layers": []v1.Descriptor{add(v1.MediaTypeImageLayerGzip, packed.Bytes())},
	})
	i.manifest, i.config = m.Digest, c.Digest
	return i, err
}

func (i testImage) put(t *testing.T, store *content.Store) {
	t.Helper()
	for _, b := range i.blobs {
		_, _, err := store.Add(t.Context(), bytes.NewReader(b), int64(len(b)))
		must(t, err)
	}
}

func anImage(t *testing.T, store *content.Store, program []byte, mark string, entrypoint ...string) (manifest, config digest.Digest) {
	t.Helper()
	i, err := newImage(program, mark, entrypoint...)
	must(t, err)
	i.put(t, store)
	return i.manifest, i.config
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
