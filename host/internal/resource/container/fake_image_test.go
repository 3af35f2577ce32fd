package container

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

func (f *fake) images() (all []image) {
	f.read("images", &all)
	return all
}

// imageBy finds an image as both runtimes do: by its ID, a tag, or a reference
// with a digest.
func (f *fake) imageBy(name string) *image {
	for _, i := range f.images() {
		if i.ID == name || slices.Contains(i.RepoTags, name) || slices.Contains(i.RepoDigests, name) {
			return &i
		}
	}
	return nil
}

// putImages keeps the images; none is no file.
func (f *fake) putImages(all []image) {
	if len(all) == 0 {
		_ = os.Remove(filepath.Join(f.dir, "images"))
		return
	}
	f.write("images", all)
}

func (f *fake) addImage(i image) {
	all := slices.DeleteFunc(f.images(), func(o image) bool { return o.ID == i.ID })
	f.putImages(append(all, i))
}

func (f *fake) imageList(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ours := []image{}
	for _, i := range f.images() {
		if r.FormValue("filters") == "" || slices.ContainsFunc(i.RepoTags, func(s string) bool { return strings.HasPrefix(s, imageName+":") }) {
			ours = append(ours, i)
		}
	}
	answer(w, 200, ours)
}

func (f *fake) imageInspect(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := strings.TrimSuffix(r.PathValue("name"), "/json")
	if i := f.imageBy(name); i != nil {
		answer(w, 200, i)
		return
	}
	no(w, 404, "no such image: %s", name)
}

func (f *fake) tag(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.imageBy(r.PathValue("id"))
	if i == nil {
		no(w, 404, "no such image")
		return
	}
	i.RepoTags = append(i.RepoTags, r.FormValue("repo")+":"+r.FormValue("tag"))
	f.addImage(*i)
	w.WriteHeader(201)
}

func (f *fake) imageRemove(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := r.PathValue("name")
	i := f.imageBy(name)
	if i == nil {
		no(w, 404, "no such image")
		return
	}
	i.RepoTags = slices.DeleteFunc(i.RepoTags, func(s string) bool { return s == name })
	all := slices.DeleteFunc(f.images(), func(o image) bool { return o.ID == i.ID })
	if i.ID != name && len(i.RepoTags)+len(i.RepoDigests) > 0 {
		all = append(all, *i)
	}
	f.putImages(all)
	answer(w, 200, []any{})
}

func (f *fake) pull(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ref := r.FormValue("fromImage")
	id, ok := f.registry[ref]
	if !ok { // so does podman: it answers before it knows
		_, _ = io.WriteString(w, `{"status":"Trying to pull"}`+"\n"+`{"errorDetail":{"message":"dial tcp: connection refused"},"error":"dial tcp: connection refused"}`+"\n")
		return
	}
	f.addImage(image{ID: string(id), RepoDigests: []string{ref}})
	_, _ = io.WriteString(w, `{"status":"Pull complete"}`+"\n")
}

// load reads an archive as docker's own store does (manifest.json) and as podman
// does (the layout), and wants both to say the same.
func (f *fake) load(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, tag, manifest, err := unpack(r.Body)
	if err != nil {
		no(w, 500, "%v", err)
		return
	}
	f.addImage(image{ID: id, RepoTags: []string{tag}, RepoDigests: map[bool][]string{true: {imageName + "@" + manifest}}[f.flavor == "podman"]})
	_, _ = io.WriteString(w, `{"stream":"Loaded image: `+tag+`\n"}`)
}

func unpack(r io.Reader) (id, tag, manifest string, err error) {
	files := map[string][]byte{}
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", "", "", err
		}
		if files[h.Name], err = io.ReadAll(t); err != nil {
			return "", "", "", err
		}
		if s, ok := strings.CutPrefix(h.Name, "blobs/sha256/"); ok && digest.FromBytes(files[h.Name]).Encoded() != s {
			return "", "", "", fmt.Errorf("%s is not what its name says", h.Name)
		}
	}
	if rest, err := io.ReadAll(r); err != nil || len(bytes.Trim(rest, "\x00")) > 0 {
		return "", "", "", fmt.Errorf("there is something behind the archive: %v", err)
	}
	var saved []struct {
		Config           string
		RepoTags, Layers []string
	}
	var index v1.Index
	var m v1.Manifest
	var layout v1.ImageLayout
	for name, v := range map[string]any{"manifest.json": &saved, "index.json": &index, "oci-layout": &layout} {
		if err := json.Unmarshal(files[name], v); err != nil {
			return "", "", "", fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(saved) != 1 || len(index.Manifests) != 1 || layout.Version != "1.0.0" {
		return "", "", "", fmt.Errorf("not one image: %v, %v", saved, index)
	}
	d := index.Manifests[0]
	if err := json.Unmarshal(files[blobPath(d.Digest)], &m); err != nil {
		return "", "", "", err
	}
	var config v1.Image
	if err := json.Unmarshal(files[saved[0].Config], &config); err != nil {
		return "", "", "", err
	}
	for i, l := range m.Layers {
		z, err := gzip.NewReader(bytes.NewReader(files[saved[0].Layers[i]]))
		if err != nil {
			return "", "", "", err
		}
		b, err := io.ReadAll(z)
		if err != nil {
			return "", "", "", err
		}
		if digest.FromBytes(b) != config.RootFS.DiffIDs[i] || blobPath(l.Digest) != saved[0].Layers[i] {
			return "", "", "", fmt.Errorf("layer %d is another one", i)
		}
	}
	if blobPath(m.Config.Digest) != saved[0].Config || d.Annotations[v1.AnnotationRefName] != saved[0].RepoTags[0] {
		return "", "", "", fmt.Errorf("the two say different things: %v, %v", saved, index)
	}
	return string(m.Config.Digest), saved[0].RepoTags[0], string(d.Digest), nil
}
