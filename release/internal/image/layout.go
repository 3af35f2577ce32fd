package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// containerdName is where containerd, and Docker with it, writes the full name of
// an image.
const containerdName = "io.containerd.image.name"

// A layout is an OCI image layout.
type layout struct{ folder }

// open gives a blob, in the size it is said to have.
func (l layout) open(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	r, size, err := l.file(v1.ImageBlobsDir + "/sha256/" + d.Digest.Encoded())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.Refusedf("it is not there")
	case err != nil:
		return nil, err
	case size != d.Size:
		r.Close()
		return nil, fault.Refusedf("it has %d bytes, not %d", size, d.Size)
	}
	return r, nil
}

func readLayout(ctx context.Context, f folder, ref Reference, want platform) (*Image, error) {
	l := layout{f}
	if err := l.check(); err != nil {
		return nil, err
	}
	entries, err := l.entries(ref.tag)
	if err != nil {
		return nil, err
	}
	i, err := pick(ctx, l, entries, want)
	if err != nil {
		return nil, err
	}
	// What is missing, or is no layer at all, is said now, and not after gigabytes
	// were written.
	for _, d := range i.Layers {
		r, err := l.open(ctx, d)
		if err == nil {
			r, err = asSaid(r, d)
		}
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", d.Digest, err)
		}
		r.Close()
	}
	return i, nil
}

func (l layout) check() error {
	b, err := l.must(v1.ImageLayoutFile)
	if err != nil {
		return err
	}
	var version v1.ImageLayout
	if err := parse(b, &version); err != nil {
		return fmt.Errorf("%q: %w", v1.ImageLayoutFile, err)
	}
	if version.Version != v1.ImageLayoutVersion {
		return fault.Refusedf("it is an OCI image layout of version %.20q, not %q", version.Version, v1.ImageLayoutVersion)
	}
	return nil
}

// must reads a file that every layout has.
func (l layout) must(name string) ([]byte, error) {
	b, err := contentOf(l, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Refusedf("it is no OCI image layout: it has no %q", name)
	}
	return b, err
}

// entries are those of index.json that a tag names.
func (l layout) entries(tag string) ([]v1.Descriptor, error) {
	b, err := l.must(v1.ImageIndexFile)
	if err != nil {
		return nil, err
	}
	var x v1.Index
	if err := parse(b, &x); err != nil {
		return nil, fmt.Errorf("%q: %w", v1.ImageIndexFile, err)
	}
	var found []v1.Descriptor
	names := map[string]bool{}
	for _, d := range x.Manifests {
		short, full := d.Annotations[v1.AnnotationRefName], d.Annotations[containerdName]
		if tag == "" || tag == short || tag == full {
			found = append(found, d)
		}
		names[short] = true
	}
	there := strings.Join(slices.Sorted(maps.Keys(names)), ", ")
	switch {
	case len(x.Manifests) == 0:
		return nil, fault.Refusedf("it holds no image")
	case len(found) == 0:
		return nil, fault.Refusedf("it holds no image %.128q, only: %.512s", tag, there)
	case tag == "" && len(names) > 1:
		return nil, fault.Refusedf("it holds several images: %.512s", there).Hint("say which, behind a colon")
	}
	return found, nil
}
