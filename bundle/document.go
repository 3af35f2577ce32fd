package bundle

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
)

// empty is the descriptor of the config every manifest of ours has. The one in
// image-spec carries the content inline, which is a second place for it.
var empty = v1.Descriptor{
	MediaType: v1.MediaTypeEmptyJSON,
	Digest:    digest.FromString("{}"),
	Size:      2,
}

var versioned = specs.Versioned{SchemaVersion: 2}

func isManifest(mediaType string) bool {
	switch mediaType {
	case v1.MediaTypeImageManifest, v1.MediaTypeImageIndex, mediaTypeDockerManifest, mediaTypeDockerList:
		return true
	}
	return false
}

// isSmall says by media type which blobs come before the large ones.
func isSmall(mediaType string) bool {
	switch mediaType {
	case MediaTypeDeclaration, v1.MediaTypeImageConfig, v1.MediaTypeEmptyJSON, mediaTypeDockerConfig:
		return true
	}
	return false
}

func isPayload(mediaType string) bool {
	switch mediaType {
	case MediaTypeFile, MediaTypeFileZstd, MediaTypePackageArch, MediaTypePackageArchSignature:
		return true
	}
	return false
}

// checkDescriptor holds what every descriptor must be, whoever wrote it.
func checkDescriptor(d v1.Descriptor, max int64) error {
	switch {
	case !canonical.Digest(d.Digest):
		return refuse("the digest %q is no SHA-256 digest", clip(string(d.Digest)))
	case d.Size < 0 || d.Size > max:
		return refuse("the size of %s is %d bytes, at most %d are read", d.Digest, d.Size, max)
	case d.MediaType == "":
		return refuse("%s has no media type", d.Digest)
	}
	return nil
}

// plain reports whether a descriptor says nothing beyond type, digest and size.
func plain(d v1.Descriptor) bool {
	return len(d.URLs) == 0 && d.Data == nil && d.Platform == nil && d.Annotations == nil
}

// parseBundle reads D. Its bytes were verified; they are still read strictly,
// for the publisher's tools can be wrong.
func parseBundle(b []byte) (*v1.Index, *Info, error) {
	var x v1.Index
	if err := canonical.Unmarshal(b, &x); err != nil {
		return nil, nil, refuse("bundle index: %w", err)
	}
	switch {
	case x.SchemaVersion != 2 || x.MediaType != v1.MediaTypeImageIndex:
		return nil, nil, refuse("bundle index: its media type is %q", clip(x.MediaType))
	case x.ArtifactType != TypeBundle:
		return nil, nil, refuse("bundle index: its artifact type is %q, not %q", clip(x.ArtifactType), TypeBundle)
	case x.Subject != nil:
		return nil, nil, refuse("bundle index: it has a subject")
	}
	info, err := parseAnnotations(x.Annotations)
	return &x, info, err
}

func parseAnnotations(a map[string]string) (*Info, error) {
	info := &Info{
		Name:         a[annotationName],
		Version:      a[annotationVersion],
		Architecture: a[annotationArchitecture],
		MinimumHost:  a[annotationMinimumHost],
	}
	var err error
	if info.Counter, err = strconv.ParseUint(a[annotationCounter], 10, 64); err != nil {
		return nil, refuse("bundle index: its counter is %q", clip(a[annotationCounter]))
	}
	if info.Created, err = time.Parse(time.RFC3339, a[annotationCreated]); err != nil {
		return nil, refuse("bundle index: its date of creation is %q", clip(a[annotationCreated]))
	}
	for _, f := range []struct{ what, value, chars string }{
		{"name", info.Name, lower + digits + "._-"},
		{"version", info.Version, lower + upper + digits + "._+-"},
		{"architecture", info.Architecture, lower + digits + "_"},
	} {
		if !isWord(f.value, f.chars) {
			return nil, refuse("bundle index: %q is no %s", clip(f.value), f.what)
		}
	}
	if info.MinimumHost != "" && !isWord(info.MinimumHost, lower+upper+digits+"._+-") {
		return nil, refuse("bundle index: %q is no version of a host", clip(info.MinimumHost))
	}
	// Written again they must be the same: no other spelling, nothing more.
	if !maps.Equal(a, annotations(info)) {
		return nil, refuse("bundle index: its annotations are not canonical")
	}
	return info, nil
}

func annotations(i *Info) map[string]string {
	a := map[string]string{
		annotationName:         i.Name,
		annotationVersion:      i.Version,
		annotationArchitecture: i.Architecture,
		annotationCounter:      strconv.FormatUint(i.Counter, 10),
		annotationCreated:      i.Created.UTC().Format(time.RFC3339),
	}
	if i.MinimumHost != "" {
		a[annotationMinimumHost] = i.MinimumHost
	}
	return a
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

// isWord reports whether s is 1 to 64 of chars and begins with a letter or a
// digit.
func isWord(s, chars string) bool {
	return len(s) >= 1 && len(s) <= 64 && strings.Trim(s, chars) == "" && !strings.ContainsRune("._+-", rune(s[0]))
}

// isTitle reports whether s can be shown to a person on one line.
func isTitle(s string) bool {
	return s != "" && len(s) <= 255 && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// ours makes a manifest of ours.
func ours(artifactType string, subject *v1.Descriptor, annotations map[string]string, layers ...v1.Descriptor) ([]byte, error) {
	return canonical.Marshal(v1.Manifest{
		Versioned:    versioned,
		MediaType:    v1.MediaTypeImageManifest,
		ArtifactType: artifactType,
		Config:       empty,
		Layers:       layers,
		Subject:      subject,
		Annotations:  annotations,
	})
}

// parseOurs reads a manifest of ours.
func parseOurs(b []byte, artifactType string) (*v1.Manifest, error) {
	var m v1.Manifest
	if err := canonical.Unmarshal(b, &m); err != nil {
		return nil, refuse("manifest of type %q: %w", artifactType, err)
	}
	switch {
	case m.SchemaVersion != 2 || m.MediaType != v1.MediaTypeImageManifest || m.ArtifactType != artifactType:
		return nil, refuse("manifest: its type is %q, not %q", clip(m.ArtifactType), artifactType)
	case m.Config.Digest != empty.Digest || m.Config.Size != empty.Size || m.Config.MediaType != empty.MediaType || !plain(m.Config):
		return nil, refuse("manifest of type %q: its config is not empty", artifactType)
	case len(m.Layers) == 0:
		return nil, refuse("manifest of type %q: it has no layer", artifactType)
	}
	return &m, nil
}

func descriptor(mediaType, artifactType string, b []byte) v1.Descriptor {
	return v1.Descriptor{
		MediaType: mediaType, ArtifactType: artifactType, Digest: digest.FromBytes(b), Size: int64(len(b)),
	}
}

// clip bounds foreign text in an error.
func clip(s string) string {
	if len(s) > 128 {
		return s[:128] + "…"
	}
	return s
}

// titled is a layer's title; "" when it has none.
func titled(d v1.Descriptor) string { return d.Annotations[v1.AnnotationTitle] }

// canonicalAnnotations reports whether a layer of ours has the annotations its type
// has, and no others.
func canonicalAnnotations(d v1.Descriptor) bool {
	want := []string{v1.AnnotationTitle}
	if d.MediaType == MediaTypeFileZstd {
		want = append(want, annotationContentDigest, annotationContentSize)
	}
	slices.Sort(want)
	return slices.Equal(slices.Sorted(maps.Keys(d.Annotations)), want)
}
