package bundle

import (
	"bytes"
	"crypto"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// What a publisher's own broken tool could sign is refused as well.
func TestASignedIndexThatBreaksARuleIsRefused(t *testing.T) {
	k := newKey(t)
	policy := trusting(t, k.Public())
	good := forgeryOf(t, specOf(100, k))
	for name, c := range map[string]struct {
		change func(*v1.Index)
		text   string
	}{
		"format":                {func(x *v1.Index) { x.ArtifactType = "application/vnd.nox-mesh.bundle.v2" }, "artifact type"},
		"T-51 another product":  {func(x *v1.Index) { x.ArtifactType = "" }, "artifact type"},
		"no name":               {func(x *v1.Index) { delete(x.Annotations, annotationName) }, "is no name"},
		"name with slash":       {func(x *v1.Index) { x.Annotations[annotationName] = "../x" }, "is no name"},
		"no version":            {func(x *v1.Index) { x.Annotations[annotationVersion] = "" }, "is no version"},
		"counter":               {func(x *v1.Index) { x.Annotations[annotationCounter] = "-1" }, "counter"},
		"counter padded":        {func(x *v1.Index) { x.Annotations[annotationCounter] = "07" }, "not canonical"},
		"date":                  {func(x *v1.Index) { x.Annotations[annotationCreated] = "now" }, "date"},
		"date in a zone":        {func(x *v1.Index) { x.Annotations[annotationCreated] = "2026-03-04T05:06:07+01:00" }, "not canonical"},
		"annotation":            {func(x *v1.Index) { x.Annotations["x"] = "y" }, "not canonical"},
		"platform":              {func(x *v1.Index) { x.Manifests[0].Platform = &v1.Platform{} }, "platform"},
		"no declaration":        {func(x *v1.Index) { x.Manifests = x.Manifests[2:] }, ""},
		"nothing":               {func(x *v1.Index) { x.Manifests = []v1.Descriptor{} }, "no declaration"},
		"T-39 digest with dots": {func(x *v1.Index) { x.Manifests[0].Digest = "sha256:../x" }, "no SHA-256 digest"},
		"size":                  {func(x *v1.Index) { x.Manifests[0].Size++ }, "bytes, not"},
		"size huge":             {func(x *v1.Index) { x.Manifests[0].Size = maxManifest + 1 }, "at most"},
		"no manifest":           {func(x *v1.Index) { x.Manifests[0].MediaType = "text/plain" }, "not a manifest"},
		"declared payload":      {func(x *v1.Index) { x.Manifests[0].ArtifactType = TypePayload }, "its type is"},
		"subject":               {func(x *v1.Index) { x.Subject = &empty }, "subject"},
	} {
		t.Run(name, func(t *testing.T) {
			f := good
			f.index = must[v1.Index](t)(decoded(must[[]byte](t)(json.Marshal(good.index))))
			c.change(&f.index)
			untouched(t, join(f.members(t)...), policy, c.text)
		})
	}
}

// titledImage describes an image as D does.
func titledImage(mediaType string, b []byte) v1.Descriptor {
	d := descriptor(mediaType, "", b)
	d.Annotations = map[string]string{v1.AnnotationTitle: "web"}
	return d
}

// signed makes a bundle with one declaration and other manifests and blobs.
func signed(t testing.TB, k crypto.Signer, manifests []v1.Descriptor, rest ...[]byte) []byte {
	t.Helper()
	f := forgeryOf(t, Spec{Name: "x", Version: "1", Architecture: "x86_64", Signers: []crypto.Signer{k},
		Declarations: []Declaration{{Title: "d", Bytes: []byte("declaration")}}})
	f.index.Manifests = append(f.index.Manifests, manifests...)
	declaration := f.rest[1]
	f.rest = f.rest[:1]
	for _, b := range rest {
		if bytes.Equal(b, []byte("config")) && declaration.body != nil {
			f.rest, declaration.body = append(f.rest, declaration), nil
		}
		f.rest = append(f.rest, madeBlob(b))
	}
	if declaration.body != nil {
		f.rest = append(f.rest, declaration)
	}
	return join(f.members(t)...)
}

func TestContainerImagesAreCarriedUntouched(t *testing.T) {
	k := newKey(t)
	config, layer := []byte("config"), []byte("layer")
	image := []byte("{ \"schemaVersion\": 2,\n \"config\": {\"mediaType\": \"" + v1.MediaTypeImageConfig + "\", \"digest\": \"" + digest.FromBytes(config).String() +
		"\", \"size\": 6}, \"layers\": [{\"mediaType\": \"" + v1.MediaTypeImageLayerGzip + "\", \"digest\": \"" + digest.FromBytes(layer).String() + "\", \"size\": 5}] }\n")
	leaf := descriptor(v1.MediaTypeImageManifest, "", image)
	list := must[[]byte](t)(json.Marshal(v1.Index{Versioned: versioned, Manifests: []v1.Descriptor{{
		MediaType: leaf.MediaType, Digest: leaf.Digest, Size: leaf.Size, Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}}}))
	b := signed(t, k, []v1.Descriptor{titledImage(v1.MediaTypeImageIndex, list)}, list, image, config, layer)
	store := openStore(t)
	info := must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: trusting(t, k.Public()), Store: store}))
	if len(info.Members) != 3 || info.Size != 11+6+5 {
		t.Errorf("%+v", info)
	}
	if got := must[[]byte](t)(store.Read(leaf.Digest, 1<<20)); !bytes.Equal(got, image) {
		t.Error("the manifest was touched")
	}
	// The other way round the layer comes before the config: out of order.
	bad := signed(t, k, []v1.Descriptor{titledImage(v1.MediaTypeImageIndex, list)}, list, image, layer, config)
	_, err := Read(ctx, bytes.NewReader(bad), Options{Policy: trusting(t, k.Public())})
	refused(t, err, "must come first")
	doubled := bytes.Replace(image, []byte(`"layers"`), []byte(`"layers": [], "layers"`), 1)
	bad = signed(t, k, []v1.Descriptor{titledImage(v1.MediaTypeImageManifest, doubled)}, doubled)
	untouched(t, bad, trusting(t, k.Public()), "there twice")
	below := must[[]byte](t)(ours(TypePayload, nil, nil, leaf))
	bad = signed(t, k, []v1.Descriptor{titledImage(v1.MediaTypeImageManifest, below)}, below)
	untouched(t, bad, trusting(t, k.Public()), "among the layers")
}

func TestT22NoSpaceIsSaidBeforeAnythingIsWritten(t *testing.T) {
	k := newKey(t)
	var layers []v1.Descriptor
	for i := range 9000 { // 72 TB
		layers = append(layers, v1.Descriptor{
			MediaType: MediaTypeFile, Digest: digest.FromString(fmt.Sprint(i)), Size: maxMember,
			Annotations: map[string]string{v1.AnnotationTitle: fmt.Sprint("file", i)},
		})
	}
	m := must[[]byte](t)(ours(TypePayload, nil, nil, layers...))
	d := descriptor(v1.MediaTypeImageManifest, TypePayload, m)
	store := openStore(t)
	before := listing(t, store)
	_, err := Read(ctx, bytes.NewReader(signed(t, k, []v1.Descriptor{d}, m)), Options{Policy: trusting(t, k.Public()), Store: store})
	if err == nil || fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "no space (needs 773") || fault.RemedyOf(err) == "" {
		t.Errorf("%v", err)
	}
	if listing(t, store) != before {
		t.Error("something was written")
	}
}

func TestLayersOfOursThatBreakARuleAreRefused(t *testing.T) {
	k := newKey(t)
	policy := trusting(t, k.Public())
	layer := func(mediaType, title string) v1.Descriptor {
		d := descriptor(mediaType, "", []byte(title))
		if title != "" {
			d.Annotations = map[string]string{v1.AnnotationTitle: title}
		}
		return d
	}
	sized := layer(MediaTypeFile, "a")
	sized.Size = maxMember + 1
	other := layer(MediaTypeFile, "b")
	other.Digest = layer(MediaTypeFile, "a").Digest
	other.Size = 77
	for _, c := range []struct {
		name, artifact string
		layers         []v1.Descriptor
		text           string
	}{
		{"no layer", TypePayload, []v1.Descriptor{}, "no layer"},
		{"no title", TypePayload, []v1.Descriptor{layer(MediaTypeFile, "")}, "no title"},
		{"title with a line", TypePayload, []v1.Descriptor{layer(MediaTypeFile, "a\nb")}, "no title"},
		{"title with an escape", TypePayload, []v1.Descriptor{layer(MediaTypeFile, "\x1b[2J")}, "no title"},
		{"title twice", TypePayload, []v1.Descriptor{layer(MediaTypeFile, "a"), layer(MediaTypePackageArch, "a")}, "there twice"},
		{"title of a declaration", TypePayload, []v1.Descriptor{layer(MediaTypeFile, "d")}, "there twice"},
		{"media type", TypePayload, []v1.Descriptor{layer("text/plain", "a")}, "is of type"},
		{"declaration in payload", TypePayload, []v1.Descriptor{layer(MediaTypeDeclaration, "a")}, "is of type"},
		{"file in declaration", TypeDeclaration, []v1.Descriptor{layer(MediaTypeFile, "a")}, "is of type"},
		{"two declarations", TypeDeclaration, []v1.Descriptor{layer(MediaTypeDeclaration, "a"), layer(MediaTypeDeclaration, "b")}, "2 declarations"},
		{"8 GiB", TypePayload, []v1.Descriptor{sized}, "at most"},
		{"two sizes", TypePayload, []v1.Descriptor{layer(MediaTypeFile, "a"), other}, "mentioned twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := must[[]byte](t)(ours(c.artifact, nil, nil, c.layers...))
			untouched(t, signed(t, k, []v1.Descriptor{descriptor(v1.MediaTypeImageManifest, c.artifact, m)}, m), policy, c.text)
		})
	}
}
