package bundle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// A layout is an OCI image layout that others wrote. Nothing in it is trusted, and
// no link leads out of it.
type layout struct{ root *os.Root }

// maxLayoutIndex bounds the index.json of a layout, which may hold more than one
// bundle.
const maxLayoutIndex = 16 << 20

func openLayout(dir string) (*layout, error) {
	root, err := input.Folder(dir)
	if err != nil {
		return nil, err
	}
	l := &layout{root}
	b, err := l.read(layoutName, 4<<10)
	var version v1.ImageLayout
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fault.Refusedf("%q is no OCI image layout: it has no %q", dir, layoutName).
			Hint("make one with oras cp -r REGISTRY/NAME:TAG --to-oci-layout DIR:bundle, or unpack a bundle with tar -xf")
	case err == nil && (canonical.Foreign(b, &version) != nil || version.Version != v1.ImageLayoutVersion):
		err = fault.Refusedf("%q is no OCI image layout of version %s", dir, v1.ImageLayoutVersion)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return l, nil
}

// file opens a regular file; a pipe in its place holds nobody up.
func (l *layout) file(name string) (*os.File, int64, error) {
	f, err := l.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fault.Refusedf("%q is not a regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, fi.Size(), nil
}

func (l *layout) read(name string, max int64) ([]byte, error) {
	f, _, err := l.file(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		err = fault.Refusedf("%q has more than %d bytes", name, max)
	}
	return b, err
}

// blob reads what d names, of at most max bytes: it has that digest and size.
func (l *layout) blob(d v1.Descriptor, max int64) ([]byte, error) {
	if err := checkDescriptor(d, max); err != nil {
		return nil, err
	}
	b, err := l.read(blobPrefix+d.Digest.Encoded(), d.Size)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(d)
	}
	if err != nil {
		return nil, err
	}
	if got := digest.FromBytes(b); got != d.Digest {
		return nil, fault.Refusedf("digest mismatch (blob %s holds %s)", d.Digest, got).Hint("fetch it again")
	}
	return b, nil
}

func missing(d v1.Descriptor) error {
	return fault.Refusedf("blob %s is not there", d.Digest).Hint("fetch it with all that belongs to it: oras cp -r")
}

// entries are those of index.json.
func (l *layout) entries() ([]v1.Descriptor, error) {
	b, err := l.read(indexName, maxLayoutIndex)
	if err != nil {
		return nil, err
	}
	var x v1.Index
	if err := canonical.Foreign(b, &x); err != nil {
		return nil, fault.Refusedf("%q: %w", indexName, err)
	}
	return x.Manifests, nil
}

// find returns D, described as its bundle describes it: the entry that ref names, or
// is the digest of, and for "" the only bundle there is. Many a program writes no
// artifact type into index.json, so it is looked for where it cannot be missing.
func (l *layout) find(entries []v1.Descriptor, ref string) (d v1.Descriptor, index []byte, err error) {
	var names []string
	for _, e := range entries {
		name := e.Annotations[v1.AnnotationRefName]
		if ref != "" && ref != name && ref != e.Digest.String() || e.MediaType != v1.MediaTypeImageIndex || e.Digest == d.Digest {
			continue
		}
		b, err := l.blob(e, maxIndex)
		if err != nil {
			return d, nil, fmt.Errorf("entry %q of %q: %w", clip(name), indexName, err)
		}
		var x v1.Index
		if canonical.Foreign(b, &x) != nil || x.ArtifactType != TypeBundle {
			continue
		}
		names = append(names, name)
		d, index = descriptor(v1.MediaTypeImageIndex, TypeBundle, b), b
	}
	d.Annotations = map[string]string{v1.AnnotationRefName: refName}
	switch {
	case len(names) == 0 && ref == "":
		return d, nil, fault.Refusedf("it holds no bundle")
	case len(names) == 0:
		return d, nil, fault.Refusedf("it holds no bundle %q", clip(ref))
	case len(names) > 1:
		return d, nil, fault.Refusedf("it holds several bundles: %.512q", names).Hint("say which, behind a colon")
	}
	return d, index, nil
}
