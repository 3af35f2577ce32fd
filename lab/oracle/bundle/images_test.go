//go:build machine

package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The images of the bundle with images, and the content of the one file in each.
const (
	app, appFile = "example.test/app:v1", "the app\n"
	db, dbFile   = "example.test/db:v2", "the database\n"
)

// withImages makes images.bundle.tar: a file, and two container images by a recipe.
// It returns the digests of the bundle and of the images' manifests, and unpacks the
// bundle to "original".
func (b *bench) withImages() (bundle string, images map[string]string) {
	b.t.Helper()
	recipe := "name = \"site\"\ndeclarations = [\"site.json\"]\n[[file]]\ntitle = \"tool\"\npath = \"tool\"\n"
	resources := []any{map[string]any{"id": "tool", "type": "file", "path": "/opt/tool", "source": "file:tool"}}
	images = map[string]string{}
	for _, i := range []struct{ name, title, content string }{{"app", app, appFile}, {"db", db, dbFile}} {
		d := b.image(i.name, i.content)
		images[i.title] = d.Digest
		recipe += "[[image]]\ntitle = \"" + i.title + "\"\nfrom = \"oci:" + i.name + "\"\n"
		resources = append(resources, map[string]any{"id": i.name, "type": "container", "name": i.name, "image": "image:" + i.title})
	}
	b.put("images.toml", recipe)
	b.put("site.json", string(b.json(map[string]any{"schema": 1, "name": "site", "generation": "counter", "resources": resources})))
	b.put("tool", strings.Repeat("a tool\n", 1000))
	out := b.must(b.ask(b.path("mesh-release"), "bundle", "create", "images.toml", "--version", "1", "--arch", architecture,
		"--counter", "7", "--keys", "keys", "--out", "images.bundle.tar", "--json"))
	b.unpack("images.bundle.tar", "original")
	return b.field(out, "digest"), images
}

// image makes a layout with one image, which has one file, /etc/what.
func (b *bench) image(layout, content string) descriptor {
	b.t.Helper()
	if err := os.MkdirAll(b.path(layout+"/blobs/sha256"), 0o700); err != nil {
		b.t.Fatal(err)
	}
	var raw, packed bytes.Buffer
	w := tar.NewWriter(&raw)
	if err := w.WriteHeader(&tar.Header{Name: "etc/what", Size: int64(len(content)), Mode: 0o644}); err != nil {
		b.t.Fatal(err)
	}
	_, _ = w.Write([]byte(content))
	_ = w.Close()
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(raw.Bytes())
	_ = z.Close()
	config := b.json(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Cmd": []string{"/none"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digestOf(raw.String())}},
	})
	c := b.blob(layout, "application/vnd.oci.image.config.v1+json", config)
	d := b.blob(layout, manifestType, b.json(document{
		Config: &c, Layers: []descriptor{b.blob(layout, "application/vnd.oci.image.layer.v1.tar+gzip", packed.Bytes())},
		MediaType: manifestType, SchemaVersion: 2,
	}))
	b.put(layout+"/oci-layout", `{"imageLayoutVersion":"1.0.0"}`)
	b.put(layout+"/index.json", string(b.json(document{Manifests: []descriptor{d}, MediaType: indexType, SchemaVersion: 2})))
	return d
}

// engine gives the bench a podman of its own: what it keeps is in the bench's
// folder, its locks too.
func (b *bench) engine() {
	b.t.Helper()
	b.put("containers.conf", "[network]\nnetwork_backend = \"netavark\"\n[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\n"+
		"events_logger = \"none\"\nlock_type = \"file\"\ntmp_dir = \""+b.path("podman/tmp")+"\"\n")
	b.put("storage.conf", "[storage]\ndriver = \"vfs\"\ngraphroot = \""+b.path("podman/graph")+"\"\nrunroot = \""+b.path("podman/run")+"\"\n")
}

// layer is the name of the only layer of an image of a layout.
func (b *bench) layer(layout, manifest string) string {
	b.t.Helper()
	return b.read(layout, descriptor{Digest: manifest}).Layers[0].name()
}

// field is a field of a JSON object that a program printed.
func (b *bench) field(out, name string) string {
	b.t.Helper()
	var x map[string]any
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		b.t.Fatalf("%v\n%s", err, out)
	}
	s, _ := x[name].(string)
	return s
}

// files are all files below a folder of the bench.
func (b *bench) files(dir string) (out []string) {
	b.t.Helper()
	err := filepath.WalkDir(b.path(dir), func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}
