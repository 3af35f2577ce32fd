package bundle

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// index.json is not signed, and it is where other programs find an image by its
// name: what stands there must be what was signed, all of it and nothing more.
func TestNamesThatWereNotSignedAreRefused(t *testing.T) {
	spec := specWithImages(t)
	policy := trusting(t, spec.Signers[0].Public())
	f := forgeryOf(t, spec)
	last := func(es []v1.Descriptor) *v1.Descriptor { return &es[len(es)-1] }
	for _, c := range []struct {
		name   string
		change func([]v1.Descriptor) []v1.Descriptor
		text   string
	}{
		{"another name", func(es []v1.Descriptor) []v1.Descriptor {
			last(es).Annotations = map[string]string{v1.AnnotationRefName: "web:2"}
			return es
		}, `is called "web:2" there, it was signed as "registry:2"`},
		{"the name of the other", func(es []v1.Descriptor) []v1.Descriptor {
			a, b := last(es), &es[len(es)-2]
			a.Annotations, b.Annotations = b.Annotations, a.Annotations
			return es
		}, `is called "registry:2" there, it was signed as "web"`},
		{"no name", func(es []v1.Descriptor) []v1.Descriptor { last(es).Annotations = nil; return es }, `is called "" there`},
		{"another annotation", func(es []v1.Descriptor) []v1.Descriptor {
			last(es).Annotations["io.containerd.image.name"] = "example.test/web"
			return es
		}, "more than it may"},
		{"another artifact type", func(es []v1.Descriptor) []v1.Descriptor { last(es).ArtifactType = "a/b"; return es }, "not as it was signed"},
		{"another media type", func(es []v1.Descriptor) []v1.Descriptor {
			last(es).MediaType = v1.MediaTypeImageManifest
			return es
		}, "not as it was signed"},
		{"one missing", func(es []v1.Descriptor) []v1.Descriptor { return es[:len(es)-1] }, `image "registry:2" is missing`},
		{"all missing", func(es []v1.Descriptor) []v1.Descriptor { return es[:len(es)-2] }, `image "web" is missing`},
		{"the other first", func(es []v1.Descriptor) []v1.Descriptor {
			es[len(es)-1], es[len(es)-2] = es[len(es)-2], es[len(es)-1]
			return es
		}, `image "registry:2" is out of order`},
		{"one of ours", func(es []v1.Descriptor) []v1.Descriptor { return append(es, f.index.Manifests[0]) }, "is no part of the bundle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := f
			f.entries = func(es []v1.Descriptor) []v1.Descriptor {
				for i := range es {
					es[i].Annotations = maps.Clone(es[i].Annotations)
				}
				return c.change(es)
			}
			untouched(t, join(f.members(t)...), policy, c.text)
		})
	}
}

// What D says of an image is signed, and must still be what the builder writes.
func TestASignedIndexWithWrongImagesIsRefused(t *testing.T) {
	spec := specWithImages(t)
	policy := trusting(t, spec.Signers[0].Public())
	for _, c := range []struct {
		name   string
		change func(declared, web, registry *v1.Descriptor)
		text   string
	}{
		{"no title", func(_, web, _ *v1.Descriptor) { web.Annotations = nil }, "neither plain nor that of an image"},
		{"one title for two", func(_, web, registry *v1.Descriptor) { registry.Annotations = web.Annotations }, `the title "web" is there twice`},
		{"the title of a file", func(_, web, _ *v1.Descriptor) { web.Annotations = map[string]string{v1.AnnotationTitle: "large"} }, `the title "large" is there twice`},
		{"called as the bundle", func(_, web, _ *v1.Descriptor) { web.Annotations = map[string]string{v1.AnnotationTitle: "bundle"} }, "neither plain nor"},
		{"an annotation more", func(_, web, _ *v1.Descriptor) {
			web.Annotations = map[string]string{v1.AnnotationTitle: "web", v1.AnnotationRefName: "x"}
		}, "neither plain nor"},
		{"an artifact", func(_, web, _ *v1.Descriptor) { web.ArtifactType = "a/b" }, "neither plain nor"},
		{"one image twice", func(_, web, registry *v1.Descriptor) { registry.Digest, registry.Size = web.Digest, web.Size }, "under another title"},
		{"a title for a declaration", func(declared, _, _ *v1.Descriptor) {
			declared.Annotations = map[string]string{v1.AnnotationTitle: "x"}
		}, "neither plain nor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := forgeryOf(t, specWithImages(t))
			f.signers = spec.Signers
			n := len(f.index.Manifests)
			c.change(&f.index.Manifests[0], &f.index.Manifests[n-2], &f.index.Manifests[n-1])
			f.entries = func(es []v1.Descriptor) []v1.Descriptor {
				return slices.CompactFunc(es, func(a, b v1.Descriptor) bool { return a.Digest == b.Digest })
			}
			untouched(t, join(f.members(t)...), policy, c.text)
		})
	}
}

// What is in an image is called by the image's title, wherever it is spoken of.
func TestWhatIsInAnImageIsCalledByItsTitle(t *testing.T) {
	spec := specWithImages(t)
	b := bytesOf(t, spec)
	info := must[*Info](t)(Inspect(ctx, bytes.NewReader(b), trusting(t, spec.Signers[0].Public())))
	var got []string
	for _, m := range info.Members {
		if m.MediaType != MediaTypeFile && m.MediaType != MediaTypeDeclaration {
			got = append(got, m.Title+": "+m.Kind())
		}
	}
	want := []string{
		"web, configuration: image configuration", "web, layer 1 of 2: image layer", "web, layer 2 of 2: image layer",
		"registry:2, configuration: image configuration", "registry:2, layer 2 of 2: image layer",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	layer := []byte("layer of registry")
	damaged := bytes.Replace(b, layer, []byte("layer of somebody"), 1)
	titles := map[string]bool{}
	_, err := Read(ctx, bytes.NewReader(damaged), Options{Policy: trusting(t, spec.Signers[0].Public()), Progress: func(p Progress) { titles[p.Title] = true }})
	refused(t, err, `("registry:2, layer 2 of 2")`)
	if !titles["web, layer 2 of 2"] || titles[digest.FromBytes(layer).String()] {
		t.Errorf("progress has the titles %v", titles)
	}
}

// Release roots belong to the bundle they came with, so that whoever follows what
// has it as its subject finds them (OCI's referrers).
func TestReleaseRootsHaveTheBundleAsTheirSubject(t *testing.T) {
	k := newKey(t)
	h := newHouse(t)
	h.next(nil)
	f := forgeryOf(t, specOf(100, k))
	f.roots = h.files
	policy := trusting(t, k.Public())
	good := f.members(t)
	must[*Info](t)(Read(ctx, bytes.NewReader(join(good...)), Options{Policy: policy}))
	var layers []v1.Descriptor
	for _, r := range h.files {
		layers = append(layers, descriptor(MediaTypeRoot, "", r))
	}
	other := descriptor(v1.MediaTypeImageIndex, "", []byte("another bundle"))
	named := other
	named.Digest, named.Size = digest.FromBytes(good[2].body), int64(len(good[2].body))
	named.Annotations = map[string]string{"x": "y"}
	for name, subject := range map[string]*v1.Descriptor{"none": nil, "another bundle": &other, "and more than that": &named} {
		m := must[[]byte](t)(ours(TypeRoot, subject, nil, layers...))
		f := f
		f.entries = func(es []v1.Descriptor) []v1.Descriptor {
			es[1] = descriptor(v1.MediaTypeImageManifest, TypeRoot, m)
			return es
		}
		ms := f.members(t)
		ms[4] = madeBlob(m)
		t.Run(name, func(t *testing.T) {
			untouched(t, join(ms...), policy, "their subject is not the bundle index")
		})
	}
}

// Names of images are in a store too, and go through Stored and a second reading.
func TestImagesAreNamedInTheStore(t *testing.T) {
	spec := specWithImages(t)
	policy := trusting(t, spec.Signers[0].Public())
	b := bytesOf(t, spec)
	store := openStore(t)
	var here, done int64
	read := func() *Info {
		return must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: policy, Store: store, Progress: func(p Progress) { here, done = p.Here, p.Done }}))
	}
	info := read()
	if here != 0 || done != info.Size {
		t.Errorf("%d bytes here of %d", here, done)
	}
	must[*Info](t)(Stored(ctx, store, info.Digest, policy))
	with, _, err := store.Marked(info.Digest)
	if err != nil || len(with) != 3 || with[1].Annotations[v1.AnnotationRefName] != "web" || with[2].Annotations[v1.AnnotationRefName] != "registry:2" {
		t.Errorf("%+v, %v", with, err)
	}
	before := listing(t, store)
	if read(); here != info.Size || done != info.Size || listing(t, store) != before {
		t.Errorf("the second time %d bytes of %d were here", here, done)
	}
}
