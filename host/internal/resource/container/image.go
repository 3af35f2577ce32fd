package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// imageName is what an image is called that we brought, with the digest that was
// declared as its tag. A name below ".invalid" (RFC 6761) is no registry's.
const imageName = "nox-mesh.invalid/image"

// maxManifest bounds a manifest, as in a bundle.
const maxManifest = 4 << 20

// An image is what the runtime says of one.
type image struct {
	ID          string `json:"Id"`
	RepoTags    []string
	RepoDigests []string
}

// has reports whether the image is what a registry calls by the digest.
func (i image) has(d digest.Digest) bool {
	return i.ID == string(d) || slices.ContainsFunc(i.RepoDigests, func(s string) bool { return strings.HasSuffix(s, "@"+string(d)) })
}

// manifest reads that of an image in the content store. It was declared by its
// digest, which is that of the bytes.
func (k *Kind) manifest(d digest.Digest) (*v1.Manifest, []byte, error) {
	b, err := k.Content.Read(d, maxManifest)
	if err != nil {
		return nil, nil, err
	}
	var m v1.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, nil, fmt.Errorf("%s is no manifest: %w", d, err)
	}
	for _, of := range append([]v1.Descriptor{m.Config}, m.Layers...) {
		if err := of.Digest.Validate(); err != nil || of.Digest.Algorithm() != digest.SHA256 || of.Size < 0 {
			return nil, nil, fmt.Errorf("%s is not the manifest of one image", d)
		}
	}
	return &m, b, nil
}

// names are what a runtime may call the image: podman, and docker's own store,
// by the digest of the configuration, docker over containerd's by that of the
// manifest. Whoever holds either can check all that is below it.
func names(d digest.Digest, m *v1.Manifest) []string {
	return []string{string(m.Config.Digest), string(d)}
}

// pinned splits what is declared: the repository, without a tag, is "" when the
// image is in the content store.
func pinned(image string) (repository string, d digest.Digest) {
	repository, of, ok := strings.Cut(image, "@")
	if !ok {
		return "", digest.Digest(image)
	}
	if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
		repository = repository[:i]
	}
	return repository, digest.Digest(of)
}

// imageDiffers reports whether a container was made of another image. Where that
// cannot be told any more, of a running one whose image has lost its name, it
// does not.
func (k *Kind) imageDiffers(ctx context.Context, r *runtime, want *declaration.Container, c *inspected) (bool, error) {
	repository, d := pinned(want.Image)
	if repository == "" {
		m, _, err := k.manifest(d)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil && !slices.Contains(names(d, m), c.Image), err
	}
	id, err := r.findPinned(ctx, repository, d)
	return err == nil && id != "" && id != c.Image, err
}

// ensureImage returns what the runtime calls the image, after bringing it there
// if it must be.
func (k *Kind) ensureImage(ctx context.Context, r *runtime, want *declaration.Container) (string, error) {
	repository, d := pinned(want.Image)
	if repository != "" {
		return r.pulled(ctx, repository, d)
	}
	m, b, err := k.manifest(d)
	if err != nil {
		return "", fmt.Errorf("cannot read image %s: %w", d, err)
	}
	id, err := r.find(ctx, names(d, m)...)
	if id != "" || err != nil {
		return id, err
	}
	a := k.archive(d, b, m)
	defer a.Close()
	err = r.call(ctx, request{method: http.MethodPost, path: "/images/load", body: a, size: -1, typ: "application/x-tar"}, progress)
	if err != nil {
		return "", fmt.Errorf("cannot load image %s: %w", d, err)
	}
	if id, err = r.find(ctx, names(d, m)...); id == "" && err == nil {
		err = fmt.Errorf("image %s was loaded and is not there", d)
	}
	return id, err
}

// find returns the first of the names that the runtime has an image by, exactly.
func (r *runtime) find(ctx context.Context, names ...string) (string, error) {
	for _, name := range names {
		var i image
		ok, err := r.get(ctx, "/images/"+name+"/json", nil, &i)
		if err != nil {
			return "", err
		}
		if ok && i.ID == name {
			return name, nil
		}
	}
	return "", nil
}

// findPinned finds an image that came from a registry, from this one or another.
func (r *runtime) findPinned(ctx context.Context, repository string, d digest.Digest) (string, error) {
	var i image
	ok, err := r.get(ctx, "/images/"+repository+"@"+string(d)+"/json", nil, &i)
	if err != nil {
		return "", err
	}
	if ok && i.has(d) {
		return i.ID, nil
	}
	var all []image
	if _, err := r.get(ctx, "/images/json", nil, &all); err != nil {
		return "", err
	}
	for _, i := range all {
		if i.has(d) {
			return i.ID, nil
		}
	}
	return "", nil
}

// pulled returns the image of a registry, after pulling it if it must be.
func (r *runtime) pulled(ctx context.Context, repository string, d digest.Digest) (string, error) {
	id, err := r.findPinned(ctx, repository, d)
	if id != "" || err != nil {
		return id, err
	}
	reference := repository + "@" + string(d)
	err = r.call(ctx, request{method: http.MethodPost, path: "/images/create", query: url.Values{"fromImage": {reference}}}, progress)
	if err != nil {
		return "", fault.Failedf("cannot pull image %q: %w", reference, err).
			Hint("see that the registry can be reached from here, or declare an image that the bundle carries")
	}
	id, err = r.findPinned(ctx, repository, d)
	if err == nil && id == "" {
		err = fmt.Errorf("image %q was pulled and is not there", reference)
	}
	if err != nil {
		return "", err
	}
	return id, r.post(ctx, "/images/"+id+"/tag", url.Values{"repo": {imageName}, "tag": {d.Encoded()}}, nil, nil)
}

// prune takes away the images that we brought and no container needs. What
// cannot be removed now is somebody's, or is so the next time.
func (k *Kind) prune(ctx context.Context, r *runtime) error {
	k.images.Lock()
	defer k.images.Unlock()
	filter, err := json.Marshal(map[string][]string{"reference": {imageName}})
	if err != nil {
		return err
	}
	var ours []image
	if _, err := r.get(ctx, "/images/json", url.Values{"filters": {string(filter)}}, &ours); err != nil {
		return err
	}
	if len(ours) == 0 {
		return nil
	}
	all, err := r.list(ctx, "")
	if err != nil {
		return err
	}
	for _, i := range ours {
		if slices.ContainsFunc(all, func(c listed) bool { return c.ImageID == i.ID }) {
			continue
		}
		if err := r.untag(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// untag takes our names off an image, and then the image, when it has no other.
func (r *runtime) untag(ctx context.Context, i image) error {
	others := slices.ContainsFunc(i.RepoTags, func(tag string) bool { return !strings.HasPrefix(tag, imageName+":") })
	if !others {
		// At once, so that a kill leaves nothing without a name. Docker does not,
		// when it came from a registry.
		if err := r.delete(ctx, "/images/"+i.ID, nil); !isStatus(err, http.StatusConflict) {
			return err
		}
	}
	for _, tag := range i.RepoTags {
		if !strings.HasPrefix(tag, imageName+":") {
			continue
		}
		if err := r.delete(ctx, "/images/"+tag, nil); err != nil && !isStatus(err, http.StatusConflict) {
			return err
		}
	}
	// One that was pulled by its digest has no other name than that.
	var left image
	ok, err := r.get(ctx, "/images/"+i.ID+"/json", nil, &left)
	if !ok || err != nil || left.ID != i.ID || len(left.RepoTags) > 0 {
		return err
	}
	if err := r.delete(ctx, "/images/"+i.ID, nil); err != nil && !isStatus(err, http.StatusConflict) {
		return err
	}
	return nil
}
