package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Two layers as they are when unpacked. What is in them nobody here looks at.
var (
	layer1 = strings.Repeat("one\n", 600)
	layer2 = strings.Repeat("two\n", 400)
)

func dockerConfig(layers ...string) string {
	var ids []string
	for _, l := range layers {
		ids = append(ids, fmt.Sprintf("%q", digest.FromString(l)))
	}
	return `{"architecture":"amd64","os":"linux","config":{"Healthcheck":{"Test":["CMD","/x"]}},"rootfs":{"type":"layers","diff_ids":[` + strings.Join(ids, ",") + `]}}`
}

func saves(config string, layers ...string) string {
	return fmt.Sprintf(`[{"Config":%q,"RepoTags":["example.test/web:v1"],"Layers":["%s"]}]`, config, strings.Join(layers, `","`))
}

func gzipped(t *testing.T, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The shapes that the same image is saved in.
func TestAnArchiveOfDockerIsGivenAManifest(t *testing.T) {
	config := dockerConfig(layer1, layer2)
	hex := func(s string) string { return digest.FromString(s).Encoded() }
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",`+
		`"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%d},"layers":[`+
		`{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s","size":2400},`+
		`{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s","size":1600}]}`,
		hex(config), len(config), hex(layer1), hex(layer2))
	old := files{
		hex(config) + ".json": []byte(config),
		"1a/layer.tar":        []byte(layer1), "1a/VERSION": []byte("1.0"), "1a/json": []byte("{}"),
		"2b/layer.tar":  []byte(layer2),
		"manifest.json": []byte(saves(hex(config)+".json", "1a/layer.tar", "2b/layer.tar")),
		"repositories":  []byte("{}"),
	}
	podman := files{
		hex(config) + ".json": []byte(config),
		hex(layer1) + ".tar":  []byte(layer1),
		hex(layer2) + ".tar":  []byte(layer2),
		"manifest.json":       []byte(saves(hex(config)+".json", hex(layer1)+".tar", hex(layer2)+".tar")),
	}
	linked := files{
		hex(config) + ".json": []byte(config),
		"1a/layer.tar":        []byte(layer1),
		hex(layer2) + ".tar":  []byte(layer2),
		"manifest.json":       []byte(saves(hex(config)+".json", "1a/layer.tar", "2b/layer.tar")),
	}
	blobs := files{
		"blobs/sha256/" + hex(config): []byte(config),
		"blobs/sha256/" + hex(layer1): []byte(layer1),
		"blobs/sha256/" + hex(layer2): []byte(layer2),
		"manifest.json":               []byte(saves("blobs/sha256/"+hex(config), "blobs/sha256/"+hex(layer1), "blobs/sha256/"+hex(layer2))),
	}
	link := tar.Header{Typeflag: tar.TypeSymlink, Name: "2b/layer.tar", Linkname: "../" + hex(layer2) + ".tar"}
	for name, path := range map[string]string{
		"Docker to 24": old.tar(t), "podman": podman.tar(t), "linked": linked.tar(t, link), "Docker from 25": blobs.tar(t),
	} {
		for _, tag := range []string{"", ":example.test/web:v1"} {
			i := mustRead(t, "docker-archive:"+path+tag)
			if string(i.Manifest) != manifest || i.Digest != digest.FromString(manifest) || i.MediaType != v1.MediaTypeImageManifest {
				t.Errorf("%s: %s", name, i.Manifest)
			}
			if got := contents(t, i); !slices.Equal(got, []string{config, layer1, layer2}) {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}

// A compressed layer stays as it is.
func TestCompressedLayersStayCompressed(t *testing.T) {
	config := dockerConfig(layer1, layer2)
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	one, two := gzipped(t, layer1), e.EncodeAll([]byte(layer2), nil)
	f := files{"c": []byte(config), "1": one, "2": two, "manifest.json": []byte(saves("c", "1", "2"))}
	i := mustRead(t, "docker-archive:"+f.tar(t))
	if got := contents(t, i); !slices.Equal(got, []string{config, string(one), string(two)}) {
		t.Errorf("%q", got)
	}
	if a, b := i.Layers[0], i.Layers[1]; a.MediaType != v1.MediaTypeImageLayerGzip || b.MediaType != v1.MediaTypeImageLayerZstd ||
		a.Digest != digest.FromBytes(one) || b.Digest != digest.FromBytes(two) {
		t.Errorf("%+v", i.Layers)
	}
}

func TestArchivesOfDockerThatAreWrong(t *testing.T) {
	config := dockerConfig(layer1)
	good := func() files {
		return files{"c": []byte(config), "1": []byte(layer1), "manifest.json": []byte(saves("c", "1"))}
	}
	for _, c := range []struct {
		name   string
		change func(files)
		want   string
	}{
		{"no manifest.json", func(f files) { delete(f, "manifest.json") }, `no archive of "docker save"`},
		{"manifest.json is none", func(f files) { f["manifest.json"] = []byte("{}") }, "cannot unmarshal"},
		{"no image", func(f files) { f["manifest.json"] = []byte("[]") }, "holds no image"},
		{"two images", func(f files) {
			s := saves("c", "1")
			f["manifest.json"] = []byte(s[:len(s)-1] + "," + strings.Replace(s[1:], "web:v1", "web:v2", 1))
		}, "several images: example.test/web:v1, example.test/web:v2"},
		{"a layer that leads out", func(f files) { f["manifest.json"] = []byte(saves("c", "../../etc/passwd")) }, "does not exist"},
		{"a configuration that is missing", func(f files) { delete(f, "c") }, "does not exist"},
		{"a layer too many", func(f files) { f["manifest.json"] = []byte(saves("c", "1", "1")) }, `"manifest.json" is about 2 layers, the configuration about 1`},
		{"layers without end", func(f files) { f["manifest.json"] = []byte(saves("c", slices.Repeat([]string{"1"}, 600)...)) }, "has 600 layers"},
		{"no layers", func(f files) {
			f["manifest.json"] = []byte(strings.Replace(saves("c", "1"), `"1"`, "", 1))
			f["c"] = []byte(dockerConfig())
		}, "has no layers"},
		{"another architecture", func(f files) { f["c"] = []byte(strings.Replace(config, "amd64", "arm64", 1)) }, "not for linux/amd64, but for linux/arm64"},
		{"an id that is none", func(f files) { f["c"] = []byte(strings.Replace(config, "sha256:", "sha1:", 1)) }, "is no SHA-256 digest"},
		{"another compressed layer", func(f files) { f["1"] = gzipped(t, layer2) }, "it unpacks to sha256:"},
		{"half a compressed layer", func(f files) { b := gzipped(t, layer1); f["1"] = b[:len(b)/2] }, "cannot unpack it"},
		{"a layer in bzip2", func(f files) { f["1"] = []byte("BZh91AY&SY") }, "compressed with bzip2, which no engine unpacks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := good()
			c.change(f)
			_, err := readRef(t, "docker-archive:"+f.tar(t))
			refused(t, err, c.want)
		})
	}
	for _, where := range []string{"../../etc/passwd", "/etc/passwd", "2/../../x"} {
		f := good()
		f["manifest.json"] = []byte(saves("c", "link"))
		_, err := readRef(t, "docker-archive:"+f.tar(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: where}))
		refused(t, err, "leads out of the archive")
	}
	_, err := readRef(t, "docker-archive:"+good().tar(t)+":example.test/web:v9")
	refused(t, err, `no image "example.test/web:v9", only: example.test/web:v1`)

	// A layer that is not what the configuration says is found as it is read.
	f := good()
	f["1"] = []byte(strings.ToUpper(layer1))
	i := mustRead(t, "docker-archive:"+f.tar(t))
	r, err := i.Open(ctx, i.Layers[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	refused(t, err, "its content is sha256:")
}

func TestReadingACompressedLayerEndsWithItsContext(t *testing.T) {
	f := files{"c": []byte(dockerConfig(layer1)), "1": gzipped(t, layer1), "manifest.json": []byte(saves("c", "1"))}
	r, err := Parse("docker-archive:" + f.tar(t))
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := Read(ended, r, "x86_64"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
