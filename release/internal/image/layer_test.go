package image

import (
	"io"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestALayerBeginsAsItsTypeSays: nothing unpacks one that does not, and who makes a
// bundle of it, or asks what would be in one, is told.
func TestALayerBeginsAsItsTypeSays(t *testing.T) {
	const gz, zst, skip = "\x1f\x8b\x08", "\x28\xb5\x2f\xfd", "\x50\x2a\x4d\x18"
	// A tar archive whose first name is BZh.
	tarOf := "BZh" + strings.Repeat("\x00", 254) + "ustar\x0000" + strings.Repeat("\x00", 504)
	for _, c := range []struct{ mediaType, content, says string }{
		{v1.MediaTypeImageLayer, tarOf, ""},
		{v1.MediaTypeImageLayer, "short", ""},
		{v1.MediaTypeImageLayerGzip, gz, ""},
		{v1.MediaTypeImageLayerZstd, zst, ""},
		{v1.MediaTypeImageLayerZstd, skip, ""},
		{typeDockerLayer, tarOf, ""},
		{typeDockerLayer + ".gzip", gz, ""},
		{typeDockerLayer + ".zstd", zst, ""},
		{v1.MediaTypeImageLayerGzip, tarOf, "its content is not compressed"},
		{v1.MediaTypeImageLayerGzip, "", "its content is not compressed"},
		{v1.MediaTypeImageLayerGzip, zst, "its content is compressed with zstd"},
		{v1.MediaTypeImageLayerZstd, gz, "its content is compressed with gzip"},
		{v1.MediaTypeImageLayer, gz, "its content is compressed with gzip"},
		{typeDockerLayer + ".gzip", tarOf, "its content is not compressed"},
	} {
		f := newLayout()
		d := f.image("linux/amd64", func(m *v1.Manifest) { m.Layers[1] = f.blob(c.mediaType, []byte(c.content)) })
		f.index(d)
		_, err := readRef(t, "oci:"+f.dir(t))
		i := mustRead(t, "docker://"+serve(t, f, nil)+"/web@"+string(d.Digest))
		r, opened := i.Open(ctx, i.Layers[1])
		if c.says != "" {
			refused(t, err, c.says)
			refused(t, opened, c.says)
			continue
		}
		if err != nil || opened != nil {
			t.Errorf("%s: %v, %v", c.mediaType, err, opened)
			continue
		}
		if b, err := io.ReadAll(r); err != nil || string(b) != c.content {
			t.Errorf("%s: %q, %v", c.mediaType, b, err)
		}
		r.Close()
	}
}
