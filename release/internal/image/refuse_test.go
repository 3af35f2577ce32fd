package image

import (
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Each case is a layout with one thing wrong.
func TestWhatIsNoImageForABundle(t *testing.T) {
	layer := func(change func(*v1.Descriptor)) func(files) {
		return func(f files) {
			f.index(f.image("linux/amd64", func(m *v1.Manifest) { change(&m.Layers[1]) }))
		}
	}
	manifest := func(change func(files, *v1.Manifest)) func(files) {
		return func(f files) { f.index(f.image("linux/amd64", func(m *v1.Manifest) { change(f, m) })) }
	}
	config := func(text string) func(files) {
		return manifest(func(f files, m *v1.Manifest) { m.Config = f.blob(v1.MediaTypeImageConfig, []byte(text)) })
	}
	var deep func(f files, n int) v1.Descriptor
	deep = func(f files, n int) v1.Descriptor {
		if n == 0 {
			return f.image("linux/amd64")
		}
		return f.nested(deep(f, n-1))
	}
	for _, c := range []struct {
		name   string
		layout func(files)
		want   string
	}{
		{"no layers", manifest(func(f files, m *v1.Manifest) { m.Layers = nil }), "has no layers"},
		{"layers without end", manifest(func(f files, m *v1.Manifest) { m.Layers = slices.Repeat(m.Layers, 300) }), "has 600 layers, at most 512"},
		{"a layer of 8 GiB", layer(func(l *v1.Descriptor) { l.Size = 8 << 30 }), "has 8589934592 bytes: a bundle takes less than 8 GiB"},
		{"a layer of less than nothing", layer(func(l *v1.Descriptor) { l.Size = -1 }), "is said to have -1 bytes"},
		{"an encrypted layer", layer(func(l *v1.Descriptor) { l.MediaType += "+encrypted" }), "is encrypted"},
		{"a layer on the web", layer(func(l *v1.Descriptor) {
			l.MediaType, l.URLs = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", []string{"https://example.test/l"}
		}), "https://example.test/l"},
		{"a layer of nobody's type", layer(func(l *v1.Descriptor) { l.MediaType = "application/x-rar" }), "which no engine unpacks"},
		{"a layer that is missing", layer(func(l *v1.Descriptor) { l.Digest = someDigest }), "layer " + someDigest + ": it is not there"},
		{"a layer of another size", layer(func(l *v1.Descriptor) { l.Size++ }), "bytes, not"},
		{"a layer whose digest is a path", layer(func(l *v1.Descriptor) { l.Digest = "sha256:../../etc/passwd" }), "is no SHA-256 digest"},
		{"an artifact", manifest(func(f files, m *v1.Manifest) { m.Config = f.blob("application/vnd.oci.empty.v1+json", []byte("{}")) }), "is no container image"},
		{"another schema", manifest(func(f files, m *v1.Manifest) { m.SchemaVersion = 3 }), "its schema is 3"},
		{"a manifest of another type", func(f files) {
			d := f.image("linux/amd64")
			d.MediaType = typeDockerManifest
			f.index(d)
		}, "its type is"},
		{"schema 1", func(f files) {
			f.index(f.blob("application/vnd.docker.distribution.manifest.v1+prettyjws", []byte(`{"schemaVersion":1}`)))
		}, "Docker's schema 1"},
		{"no manifest at all", func(f files) { f.index(f.blob("text/plain", []byte("x"))) }, "is no container image"},
		{"nothing", func(f files) { f.index() }, "holds no image"},
		{"only attestations", func(f files) {
			f.index(on(f.image("linux/amd64"), "unknown/unknown"), on(f.image("linux/arm64"), "unknown/unknown"))
		}, "holds no container image"},
		{"another architecture", func(f files) { f.index(f.image("linux/arm64/v8")) }, "it is not for linux/amd64, but for linux/arm64/v8"},
		{"another system", func(f files) { f.index(f.image("windows/amd64")) }, "but for windows/amd64"},
		{"a machine that not everybody has", func(f files) { f.index(f.image("linux/amd64/v3")) }, "but for linux/amd64/v3"},
		{"none of the many", func(f files) {
			f.index(on(f.image("linux/arm64"), "linux/arm64"), on(f.image("linux/s390x"), "linux/s390x"))
		}, "but for linux/arm64, linux/s390x"},
		{"a lying index", func(f files) { f.index(on(f.image("linux/arm64"), "linux/amd64")) }, "is said to be for linux/amd64, but is for linux/arm64"},
		{"two for one platform", func(f files) {
			f.index(f.image("linux/amd64"), f.image("linux/amd64", func(m *v1.Manifest) { m.Annotations = map[string]string{"a": "b"} }))
		}, "holds 2 images for linux/amd64"},
		{"a deep index", func(f files) { f.index(deep(f, 9)) }, "nested more than"},
		{"no platform", config(`{"rootfs": {"diff_ids": ["a", "b"]}}`), "says not what machines"},
		{"one layer too few", config(configOf("linux/amd64", 1)), "is about 1 layers, the manifest about 2"},
		{"a configuration that is none", config("[]"), "cannot unmarshal"},
		{"a configuration that is large", config(`"` + strings.Repeat("x", maxDocument) + `"`), "at most"},
		{"a manifest that is large", manifest(func(f files, m *v1.Manifest) {
			m.Annotations = map[string]string{"x": strings.Repeat("x", maxDocument)}
		}), "at most"},
		{"an index that is large", func(f files) { f["index.json"] = make([]byte, maxDocument+1) }, "more than 4194304 bytes"},
		{"a manifest with another content", func(f files) {
			d := f.image("linux/amd64")
			name := "blobs/sha256/" + d.Digest.Encoded()
			f[name] = append([]byte{' '}, f[name][:len(f[name])-1]...)
			f.index(d)
		}, "its content is sha256:"},
		{"a layout of the future", func(f files) {
			f.index(f.image("linux/amd64"))
			f["oci-layout"] = []byte(`{"imageLayoutVersion":"2.0.0"}`)
		}, `version "2.0.0"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newLayout()
			c.layout(f)
			_, err := readRef(t, "oci:"+f.dir(t))
			refused(t, err, c.want)
			_, err = readRef(t, "oci-archive:"+f.tar(t))
			refused(t, err, c.want)
		})
	}
}

func TestTheOneForThePlatformIsPicked(t *testing.T) {
	attestation := func(f files) v1.Descriptor {
		d := on(f.image("linux/riscv64"), "unknown/unknown")
		d.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest"}
		return d
	}
	signature := func(f files) v1.Descriptor {
		d := f.json(v1.MediaTypeImageManifest, v1.Manifest{Config: v1.DescriptorEmptyJSON})
		d.ArtifactType = "application/vnd.dev.sigstore.bundle.v0.3+json"
		return d
	}
	for name, layout := range map[string]func(f files, amd64, arm64 v1.Descriptor) files{
		"said by the index": func(f files, amd64, arm64 v1.Descriptor) files {
			return f.index(f.nested(on(arm64, "linux/arm64"), on(amd64, "linux/amd64"), attestation(f), attestation(f)))
		},
		"said by the images": func(f files, amd64, arm64 v1.Descriptor) files { return f.index(arm64, amd64, signature(f)) },
		"a variant of many": func(f files, amd64, arm64 v1.Descriptor) files {
			return f.index(on(f.image("linux/amd64/v3"), "linux/amd64/v3"), on(amd64, "linux/amd64"))
		},
		"an index in an index": func(f files, amd64, arm64 v1.Descriptor) files {
			return f.index(f.nested(f.nested(on(arm64, "linux/arm64")), f.nested(on(amd64, "linux/amd64"), signature(f))))
		},
		"the same twice": func(f files, amd64, arm64 v1.Descriptor) files {
			return f.index(tagged(amd64, "v1"), tagged(f.nested(amd64), "v1"))
		},
		"alone": func(f files, amd64, arm64 v1.Descriptor) files { return f.index(amd64) },
		// Others in the index need not be there: nobody reads them.
		"the others are missing": func(f files, amd64, arm64 v1.Descriptor) files {
			gone := on(v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: someDigest, Size: 1}, "linux/arm/v7")
			return f.index(f.nested(gone, on(amd64, "linux/amd64")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newLayout()
			amd64 := f.image("linux/amd64")
			layout(f, amd64, f.image("linux/arm64/v8"))
			if i := mustRead(t, "oci:"+f.dir(t)); i.Digest != amd64.Digest {
				t.Errorf("picked %s, not %s", i.Digest, amd64.Digest)
			}
		})
	}
}

func TestTheOtherArchitecture(t *testing.T) {
	f := newLayout()
	want := f.image("linux/arm64/v8")
	f.index(f.image("linux/amd64"), want)
	r, err := Parse("oci:" + f.dir(t))
	if err != nil {
		t.Fatal(err)
	}
	i, err := Read(ctx, r, "aarch64")
	if err != nil || i.Digest != want.Digest {
		t.Errorf("%v %v", i, err)
	}
	_, err = Read(ctx, r, "mips")
	refused(t, err, `no images are for "mips"`)
}

func FuzzManifests(f *testing.F) {
	l := newLayout()
	d := l.image("linux/amd64")
	f.Add([]byte("{}"))
	f.Add(l["blobs/sha256/"+d.Digest.Encoded()])
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseManifest(b, v1.Descriptor{MediaType: v1.MediaTypeImageManifest})
		if err != nil {
			return
		}
		for _, l := range m.Layers {
			if l.Size < 0 || l.Size >= 8<<30 || !slices.Contains(layerTypes, l.MediaType) || l.Digest.Validate() != nil {
				t.Errorf("taken: %+v", l)
			}
		}
	})
}
