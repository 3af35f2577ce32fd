package content

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

const (
	// withAnnotation on an entry of index.json names the marked tree it
	// belongs to: a signature has no other place than beside what it signs, and an
	// image within it is found by other tools only when it is listed here.
	withAnnotation = "vnd.nox-mesh.with"

	maxIndex = 16 << 20
)

// Mark records that the tree under main is complete, gives it a name for other
// tools, and keeps with it what belongs to it: what is not under it, and what is and
// shall be found by a name of its own, which its annotation for that says. It is
// written last: all blobs must be there. A mark that is there already as it should
// be is not written again. A name goes to who was marked last, but none is taken
// from a tree for what is within another.
func (s *Store) Mark(main v1.Descriptor, name string, with ...v1.Descriptor) error {
	// Nothing goes between the look and the mark.
	l, err := s.Lease()
	if err != nil {
		return err
	}
	defer l.Release()
	for _, d := range append([]v1.Descriptor{main}, with...) {
		if !s.Has(d.Digest, d.Size) {
			return fmt.Errorf("cannot mark %s: blob %s of %d bytes is not there", main.Digest, d.Digest, d.Size)
		}
	}
	err = s.locked(func() error {
		index, err := s.readIndex()
		if err != nil {
			return err
		}
		return s.writeIndex(remark(index, main, name, with))
	})
	if err != nil {
		return fmt.Errorf("cannot mark %s: %w", main.Digest, err)
	}
	return nil
}

// Unmark takes back the mark of the tree under d and of what was marked with it,
// durably. Its blobs go with the next Collect, unless something else needs them.
// A tree that is not marked is no error.
func (s *Store) Unmark(d digest.Digest) error {
	if err := s.unmark(d); err != nil {
		return fmt.Errorf("cannot unmark %s: %w", d, err)
	}
	return nil
}

func (s *Store) unmark(ds ...digest.Digest) error {
	return s.locked(func() error {
		index, err := s.readIndex()
		if err != nil {
			return err
		}
		index.Manifests = slices.DeleteFunc(index.Manifests, func(e v1.Descriptor) bool {
			return slices.ContainsFunc(ds, func(d digest.Digest) bool { return belongs(e, d) })
		})
		return s.writeIndex(index)
	})
}

// Marks returns the trees that are marked complete, with their names, in the
// order in which they were marked.
func (s *Store) Marks() ([]v1.Descriptor, error) {
	index, err := s.readIndex()
	if err != nil {
		return nil, fmt.Errorf("cannot read content store: %w", err)
	}
	return slices.DeleteFunc(index.Manifests, func(e v1.Descriptor) bool { return e.Annotations[withAnnotation] != "" }), nil
}

// belongs says whether the entry e is the mark of d, or was marked with it.
func belongs(e v1.Descriptor, d digest.Digest) bool {
	with := e.Annotations[withAnnotation]
	return with == d.String() || e.Digest == d && with == ""
}

func remark(old *v1.Index, main v1.Descriptor, name string, with []v1.Descriptor) *v1.Index {
	index := &v1.Index{}
	mine := func(e v1.Descriptor) bool { return belongs(e, main.Digest) }
	taken := map[string]bool{name: true, "": true}
	for _, e := range old.Manifests {
		if e.Annotations[withAnnotation] == "" && !mine(e) {
			taken[e.Annotations[v1.AnnotationRefName]] = true
		}
	}
	entries := []v1.Descriptor{annotated(main, map[string]string{v1.AnnotationRefName: name})}
	given := map[string]bool{name: true}
	for _, w := range with {
		annotations := map[string]string{withAnnotation: main.Digest.String()}
		if n := w.Annotations[v1.AnnotationRefName]; !taken[n] {
			annotations[v1.AnnotationRefName] = n
			given[n], taken[n] = true, true
		}
		entries = append(entries, annotated(w, annotations))
	}
	placed := false
	for _, e := range old.Manifests {
		switch {
		case mine(e) && placed:
		case mine(e):
			// In place, so that an equal mark gives equal bytes.
			index.Manifests, placed = append(index.Manifests, entries...), true
		case given[e.Annotations[v1.AnnotationRefName]]:
			e.Annotations = maps.Clone(e.Annotations)
			delete(e.Annotations, v1.AnnotationRefName)
			index.Manifests = append(index.Manifests, e)
		default:
			index.Manifests = append(index.Manifests, e)
		}
	}
	if !placed {
		index.Manifests = append(index.Manifests, entries...)
	}
	return index
}

func annotated(d v1.Descriptor, annotations map[string]string) v1.Descriptor {
	return v1.Descriptor{
		MediaType: d.MediaType, ArtifactType: d.ArtifactType, Digest: d.Digest, Size: d.Size,
		Annotations: annotations,
	}
}

// Marked reports whether the tree under d was marked complete, and returns what
// was marked with it.
func (s *Store) Marked(d digest.Digest) (with []v1.Descriptor, ok bool, err error) {
	index, err := s.readIndex()
	if err != nil {
		return nil, false, fmt.Errorf("cannot read content store: %w", err)
	}
	for _, e := range index.Manifests {
		switch e.Annotations[withAnnotation] {
		case "":
			ok = ok || e.Digest == d
		case d.String():
			with = append(with, e)
		}
	}
	if !ok {
		return nil, false, nil
	}
	return with, true, nil
}

// A damagedError is about an index.json that was read and is wrong.
type damagedError struct{ error }

func (e damagedError) Unwrap() error { return e.error }

func (s *Store) readIndex() (*v1.Index, error) {
	name := filepath.Join(s.dir, v1.ImageIndexFile)
	fi, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > maxIndex {
		return nil, damagedError{fault.Refusedf("cannot read %q: it is no file of at most %d bytes", name, maxIndex)}
	}
	b, err := input.ReadFile(name, maxIndex)
	if err != nil {
		return nil, err
	}
	var index v1.Index
	if err := canonical.Foreign(b, &index); err != nil {
		return nil, damagedError{fault.Refusedf("cannot read %q: %w", name, err)}
	}
	return &index, nil
}

// writeIndex writes index.json, under the lock, if it is to change.
func (s *Store) writeIndex(index *v1.Index) error {
	index.Versioned = specs.Versioned{SchemaVersion: 2}
	index.MediaType = v1.MediaTypeImageIndex
	if index.Manifests == nil {
		index.Manifests = []v1.Descriptor{}
	}
	b, err := canonical.Marshal(index)
	if err != nil {
		return err
	}
	if len(b) > maxIndex {
		// The next one to read it would take it for damaged.
		return fault.Refusedf("there are too many marks: index.json would have more than %d bytes", maxIndex)
	}
	name := filepath.Join(s.dir, v1.ImageIndexFile)
	if old, err := input.ReadFile(name, maxIndex); err == nil && bytes.Equal(old, b) {
		return nil
	}
	return durable.WriteFile(name, b, 0o600)
}

// locked runs f while no other process changes index.json.
func (s *Store) locked(f func() error) error {
	lock, err := os.OpenFile(filepath.Join(s.dir, lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("cannot lock %q: %w", lock.Name(), err)
	}
	return f()
}
