//go:build machine

package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	indexType     = "application/vnd.oci.image.index.v1+json"
	manifestType  = "application/vnd.oci.image.manifest.v1+json"
	rootType      = "application/vnd.nox-mesh.root.v1"
	signatureType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	refName       = "org.opencontainers.image.ref.name"
	emptyBlob     = "blobs/sha256/44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" // {}
)

// A document is an index or a manifest. Its fields are in the order of the
// alphabet, as a bundle has them.
type document struct {
	Annotations   map[string]string `json:"annotations,omitempty"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        *descriptor       `json:"config,omitempty"`
	Layers        []descriptor      `json:"layers,omitempty"`
	Manifests     []descriptor      `json:"manifests,omitempty"`
	MediaType     string            `json:"mediaType"`
	SchemaVersion int               `json:"schemaVersion"`
	Subject       *descriptor       `json:"subject,omitempty"`
}

type descriptor struct {
	Annotations  map[string]string `json:"annotations,omitempty"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Digest       string            `json:"digest"`
	MediaType    string            `json:"mediaType"`
	Size         int64             `json:"size"`
}

func (d descriptor) name() string { return "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:") }

// assemble writes a bundle as the design says, with another writer than ours:
// index.json with these entries, and then what lies in a layout, in order.
func (b *bench) assemble(out, layout string, entries ...descriptor) {
	b.t.Helper()
	var file bytes.Buffer
	w := tar.NewWriter(&file)
	member := func(name string, content []byte) {
		h := &tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644, ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			b.t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			b.t.Fatal(err)
		}
	}
	member("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	member("index.json", b.json(document{Manifests: entries, MediaType: indexType, SchemaVersion: 2}))
	for _, name := range b.order(layout, entries) {
		member(name, []byte(b.get(layout+"/"+name)))
	}
	if err := w.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.put(out, file.String())
}

// order is that of the blobs in a bundle.
func (b *bench) order(layout string, entries []descriptor) []string {
	b.t.Helper()
	names := []string{entries[0].name(), emptyBlob}
	for _, e := range entries[1:] {
		if e.ArtifactType == rootType || e.ArtifactType == signatureType {
			names = append(names, e.name())
			for _, l := range b.read(layout, e).Layers {
				names = append(names, l.name())
			}
		}
	}
	var small, large []string
	var walk func(descriptor)
	walk = func(d descriptor) {
		x := b.read(layout, d)
		for _, m := range x.Manifests {
			names = append(names, m.name())
			walk(m)
		}
		if x.Config != nil {
			small = append(small, x.Config.name())
		}
		for _, l := range x.Layers {
			if l.MediaType == "application/vnd.nox-mesh.declaration.v1+json" {
				small = append(small, l.name())
			} else {
				large = append(large, l.name())
			}
		}
	}
	walk(entries[0])
	var once []string
	for _, name := range slices.Concat(names, small, large) {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}

// read reads a document of a layout.
func (b *bench) read(layout string, d descriptor) (x document) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(b.get(layout+"/"+d.name())), &x); err != nil {
		b.t.Fatal(err)
	}
	return x
}

// entries are those of a layout's index.json.
func (b *bench) entries(layout string) []descriptor {
	b.t.Helper()
	var x document
	if err := json.Unmarshal([]byte(b.get(layout+"/index.json")), &x); err != nil {
		b.t.Fatal(err)
	}
	return x.Manifests
}

// blob puts a blob into a layout.
func (b *bench) blob(layout, mediaType string, content []byte) descriptor {
	b.t.Helper()
	d := descriptor{Digest: digestOf(string(content)), MediaType: mediaType, Size: int64(len(content))}
	b.put(layout+"/"+d.name(), string(content))
	return d
}

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (b *bench) json(v any) []byte {
	b.t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) get(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

// unpack unpacks a bundle into a folder, as GNU tar does it.
func (b *bench) unpack(bundle, dir string) {
	b.t.Helper()
	if err := os.Mkdir(b.path(dir), 0o700); err != nil {
		b.t.Fatal(err)
	}
	b.must(b.ask("tar", "-C", dir, "-xf", bundle))
}

// exists says whether a file of the bench is there.
func (b *bench) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(b.dir, name))
	return err == nil
}
