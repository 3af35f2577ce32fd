package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const dockerLayer = "application/vnd.docker.image.rootfs.diff.tar.gzip"

// imageOf is an image with a spelling of its own: its bytes must come through.
func imageOf(title, mediaType, configType, layerType string, layers ...string) Image {
	content := map[digest.Digest]string{}
	describe := func(mediaType, b string) string {
		d := digest.FromString(b)
		content[d] = b
		return fmt.Sprintf("{ \"mediaType\": %q, \"size\": %d, \"digest\": %q }", mediaType, len(b), d)
	}
	config := describe(configType, `{"architecture":"amd64","os":"linux","title":"`+title+`"}`)
	var ls []string
	for _, l := range layers {
		ls = append(ls, describe(layerType, l))
	}
	m := fmt.Sprintf("{\n \"schemaVersion\": 2,\n \"mediaType\": %q,\n \"config\": %s,\n \"layers\": [%s]\n}", mediaType, config, strings.Join(ls, ", "))
	return Image{Title: title, MediaType: mediaType, Manifest: []byte(m), Open: func(d v1.Descriptor) (io.ReadCloser, error) {
		b, ok := content[d.Digest]
		if !ok {
			return nil, fmt.Errorf("the image has no %s", d.Digest)
		}
		delete(content, d.Digest)
		return io.NopCloser(strings.NewReader(b)), nil
	}}
}

func (i Image) digest() digest.Digest { return digest.FromBytes(i.Manifest) }

// specWithImages has two images, which share a layer.
func specWithImages(t testing.TB) Spec {
	t.Helper()
	spec := specOf(100, newKey(t))
	spec.Images = []Image{
		imageOf("web", v1.MediaTypeImageManifest, v1.MediaTypeImageConfig, v1.MediaTypeImageLayerGzip, "shared layer", "layer of web"),
		imageOf("registry:2", mediaTypeDockerManifest, mediaTypeDockerConfig, dockerLayer, "shared layer", "layer of registry"),
	}
	for _, i := range spec.Images {
		spec.Declarations[1].Needs = append(spec.Declarations[1].Needs, i.digest())
	}
	return spec
}

func TestImagesComeThroughUntouched(t *testing.T) {
	spec := specWithImages(t)
	k := spec.Signers[0]
	b := bytesOf(t, spec)
	var names []string
	body := map[string]string{}
	for _, m := range split(t, b) {
		names = append(names, m.name())
		body[m.name()] = string(m.body)
	}
	for _, i := range spec.Images {
		if got := body[blobPrefix+i.digest().Encoded()]; got != string(i.Manifest) {
			t.Errorf("%s: its manifest is %q", i.Title, got)
		}
	}
	shared := blobPrefix + digest.FromString("shared layer").Encoded()
	if n := len(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n != shared })); n != 1 || body[shared] != "shared layer" {
		t.Errorf("the shared layer is there %d times", n)
	}
	// Configurations are small, layers are large; layers come in the images' order.
	var want []string
	for _, s := range []string{
		`{"architecture":"amd64","os":"linux","title":"web"}`, `{"architecture":"amd64","os":"linux","title":"registry:2"}`,
		"shared layer", "layer of web", "layer of registry",
	} {
		want = append(want, blobPrefix+digest.FromString(s).Encoded())
	}
	got := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(want, n) })
	if !slices.Equal(got, want) {
		t.Errorf("their order is\n%q\nwant\n%q", got, want)
	}

	store := openStore(t)
	policy := trusting(t, k.Public())
	info := must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: policy, Store: store}))
	for _, i := range spec.Images {
		if !store.Has(i.digest(), int64(len(i.Manifest))) {
			t.Errorf("the store has no manifest of %q", i.Title)
		}
	}
	must[*Info](t)(Stored(ctx, store, info.Digest, policy))
}

// A descriptor with a platform makes podman load one image and say nothing; a name
// in index.json lets people copy an image out.
func TestImagesAreFoundByTheirTitle(t *testing.T) {
	spec := specWithImages(t)
	ms := split(t, bytesOf(t, spec))
	var pointers, d v1.Index
	for i, x := range []*v1.Index{&pointers, &d} {
		if err := json.Unmarshal(ms[i+1].body, x); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Contains(ms[1].body, []byte(`"platform"`)) || bytes.Contains(ms[2].body, []byte(`"platform"`)) {
		t.Error("there is a platform")
	}
	named, titles := pointers.Manifests[len(pointers.Manifests)-2:], d.Manifests[len(d.Manifests)-2:]
	for n, i := range spec.Images {
		if named[n].Digest != i.digest() || named[n].Annotations[v1.AnnotationRefName] != i.Title || named[n].MediaType != i.MediaType {
			t.Errorf("index.json: %+v", named[n])
		}
		if titles[n].Digest != i.digest() || titles[n].Annotations[v1.AnnotationTitle] != i.Title {
			t.Errorf("bundle index: %+v", titles[n])
		}
	}
}

func TestImagesAreTheSameBytesTwice(t *testing.T) {
	a, b := specWithImages(t), specWithImages(t)
	b.Signers = a.Signers
	if !bytes.Equal(bytesOf(t, a), bytesOf(t, b)) {
		t.Error("two builds differ")
	}
}

func TestAPreviewIsWhatIsBuilt(t *testing.T) {
	spec := specWithImages(t)
	unsigned := spec
	unsigned.Signers = nil
	for i := range unsigned.Images {
		open := unsigned.Images[i].Open
		unsigned.Images[i].Open = func(d v1.Descriptor) (io.ReadCloser, error) {
			t.Errorf("%s was opened", d.Digest)
			return open(d)
		}
	}
	preview := must[*Info](t)(Preview(unsigned))
	again := specWithImages(t)
	again.Signers = spec.Signers
	built := must[*Info](t)(Build(ctx, filepath.Join(t.TempDir(), "b"), again))
	if preview.Digest != built.Digest || preview.Size != built.Size || !slices.Equal(preview.Members, built.Members) ||
		!slices.Equal(preview.Declarations, built.Declarations) || preview.Counter != built.Counter {
		t.Errorf("%+v\n%+v", preview, built)
	}
	unsigned.Images[0].Title = "bundle"
	_, err := Preview(unsigned)
	refused(t, err, "no title of an image")
}

func TestImagesThatMakeNoBundle(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		want   string
		kind   fault.Kind
	}{
		"needed by nobody":       {func(s *Spec) { s.Declarations[1].Needs = s.Declarations[1].Needs[:2] }, "is needed by no declaration", fault.Refused},
		"there twice":            {func(s *Spec) { s.Images = append(s.Images, s.Images[0]); s.Images[2].Title = "x" }, "under another title", fault.Refused},
		"titled like a file":     {func(s *Spec) { s.Images[0].Title = "large" }, "there twice", fault.Refused},
		"titled like another":    {func(s *Spec) { s.Images[0].Title = s.Images[1].Title }, "there twice", fault.Refused},
		"titled like the bundle": {func(s *Spec) { s.Images[0].Title = "bundle" }, "no title of an image", fault.Refused},
		"titled like a path":     {func(s *Spec) { s.Images[0].Title = "../web" }, "no title of an image", fault.Refused},
		"an index":               {func(s *Spec) { s.Images[0].MediaType = v1.MediaTypeImageIndex }, "not one image's manifest", fault.Refused},
		"cannot be opened":       {func(s *Spec) { s.Images[0].Open = nil }, "cannot be opened", fault.Refused},
		"another type inside":    {func(s *Spec) { s.Images[0].MediaType = mediaTypeDockerManifest }, "its type is", fault.Refused},
		"a key twice": {func(s *Spec) {
			m := bytes.Replace(s.Images[0].Manifest, []byte("{"), []byte(`{"layers":[],`), 1)
			s.Declarations[1].Needs = append(s.Declarations[1].Needs[:1], digest.FromBytes(m), s.Images[1].digest())
			s.Images[0].Manifest = m
		}, `"layers" is there twice`, fault.Refused},
		"one that cannot be read": {func(s *Spec) {
			s.Images[0].Open = func(v1.Descriptor) (io.ReadCloser, error) { return nil, io.ErrUnexpectedEOF }
		}, "unexpected EOF", fault.Failed},
		"changed meanwhile": {func(s *Spec) {
			s.Images[0].Open = func(d v1.Descriptor) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(strings.Repeat("x", int(d.Size)))), nil
			}
		}, "digest mismatch", fault.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specWithImages(t)
			c.change(&spec)
			dir := t.TempDir()
			_, err := Build(ctx, filepath.Join(dir, "b"), spec)
			if err == nil || fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
}

func TestTitlesOfImagesAreNamesToOtherTools(t *testing.T) {
	for title, want := range map[string]bool{
		"web": true, "web:v1": true, "example.test:5000/a/web:1.2.3": true, "A--b": true, "a": true,
		"": false, "bundle": false, "a b": false, "-a": false, "a-": false, "a..b": false, "ä": false, strings.Repeat("a", 256): false,
	} {
		if ValidImageTitle(title) != want {
			t.Errorf("%q: %v", title, !want)
		}
	}
}
