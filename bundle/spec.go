package bundle

import (
	"crypto"
	"io"
	"maps"
	"regexp"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Spec says what a bundle shall hold. The order of Declarations and Payload is
// the order in the file: what a reconcile needs first comes first.
type Spec struct {
	// Name is [a-z0-9][a-z0-9._-]*, Version [0-9A-Za-z][0-9A-Za-z._+-]*; each
	// is at most 64 bytes.
	Name, Version string
	// Architecture is as uname(1) spells it: "x86_64", "aarch64".
	Architecture string
	// Counter grows with each release of one name.
	Counter uint64
	// Created is kept to the second, in UTC. It is for people.
	Created time.Time
	// MinimumHost is the lowest version of a host that may apply it, or "".
	MinimumHost string
	// Declarations are at least one.
	Declarations []Declaration
	// Payload holds exactly the blobs that the declarations need, and Images
	// the container images.
	Payload []Blob
	Images  []Image
	// Roots is the chain of release roots, oldest first, as the files
	// N.root.json hold them. When there are any, each signer must be a release
	// key of the last.
	Roots [][]byte
	// Signers sign the bundle, one signature each; at least one, at most 16. Their
	// order means nothing.
	Signers []crypto.Signer
	// Inputs are the paths of files that the content comes from: the bundle takes
	// the place of none of them.
	Inputs []string
	// Progress, if set, is told as content is "writing" and then as it is "reading
	// back".
	Progress Told
}

// Told is who is told how far a work is, from the goroutine that does it. It is
// begun anew when doing, a verb, is another.
type Told func(doing string, p Progress)

// of is who is told while one thing is done, or nil.
func (t Told) of(doing string) func(Progress) {
	if t == nil {
		return nil
	}
	return func(p Progress) { t(doing, p) }
}

// A Declaration is a document to the bundle, and the digests it needs.
type Declaration struct {
	// Title names it, unique among all titles of the bundle: 1 to 255 bytes
	// that can be printed.
	Title string
	Bytes []byte
	// Needs are the digests of the payload blobs that the document names, and
	// of images' manifests; whatever else has to be with them (a package's
	// signature) included.
	Needs []digest.Digest
}

// A Blob is content that the declarations need.
type Blob struct {
	Digest digest.Digest
	// Size is in bytes, below 8 GiB.
	Size int64
	// Title is a name for people, unique among all titles of the bundle.
	Title string
	// MediaType is one of the payload media types; "" is MediaTypeFile.
	MediaType string
	// Open gives the content; it is called once, and not for a second blob of
	// the same digest.
	Open func() (io.ReadCloser, error)
	// Expanded is set when MediaType is MediaTypeFileZstd: what comes out of the
	// content, which is what declarations name.
	Expanded Expanded
}

// Expanded is what is in a compressed blob.
type Expanded struct {
	Digest digest.Digest
	// Size is in bytes, below 8 GiB.
	Size int64
}

// needed is the digest by which declarations need the blob.
func (b Blob) needed() digest.Digest {
	if b.MediaType == MediaTypeFileZstd {
		return b.Expanded.Digest
	}
	return b.Digest
}

// An Image is a container image that the declarations need, for one platform. Its
// manifest goes into the bundle as it is; so do configuration and layers.
type Image struct {
	// Title is a name for people, unique among all titles of the bundle. Other
	// tools find the image in the file by it, so it is a name to them as well:
	// [A-Za-z0-9] and single ones of [-._:@/+] between.
	Title string
	// MediaType is that of Manifest, OCI's or Docker's. An index is refused.
	MediaType string
	Manifest  []byte
	// Open gives the content of what the manifest mentions; it is called once
	// for each digest that nothing else in the bundle has.
	Open func(v1.Descriptor) (io.ReadCloser, error)
}

// ValidName reports whether a bundle can have that name, and ValidVersion that
// version.
func ValidName(s string) bool    { return isWord(s, lower+digits+"._-") }
func ValidVersion(s string) bool { return isWord(s, lower+upper+digits+"._+-") }

// ValidImageTitle reports whether an image in a bundle can have that title.
func ValidImageTitle(s string) bool {
	return s != refName && len(s) <= 255 && refPattern.MatchString(s)
}

// refPattern is what image-spec (annotations.md) has for the name of a reference.
var refPattern = regexp.MustCompile(`^[A-Za-z0-9]+([-._:@+/][A-Za-z0-9]+|--[A-Za-z0-9]+)*$`)

// closed holds that what the declarations need is what the bundle holds.
func closed(spec Spec) error {
	needed, held := map[digest.Digest]bool{}, map[digest.Digest]bool{}
	for _, b := range spec.Payload {
		if b.Open == nil {
			return fault.Refusedf("payload %q cannot be opened", b.Title)
		}
		held[b.needed()] = true
	}
	images, err := imageDigests(spec)
	if err != nil {
		return err
	}
	maps.Copy(held, images)
	for _, d := range spec.Declarations {
		for _, n := range d.Needs {
			if !held[n] {
				return fault.Refusedf("declaration %q needs %s, which is not in the payload and no image", d.Title, n)
			}
			needed[n] = true
		}
	}
	for _, b := range spec.Payload {
		if !needed[b.needed()] {
			return fault.Refusedf("payload %q (%s) is needed by no declaration", b.Title, b.needed())
		}
	}
	for _, i := range spec.Images {
		if d := digest.FromBytes(i.Manifest); !needed[d] {
			return fault.Refusedf("image %q (%s) is needed by no declaration", i.Title, d)
		}
	}
	return nil
}

// imageDigests are those of the images' manifests. No two images may be the same,
// or have one title with anything else.
func imageDigests(spec Spec) (map[digest.Digest]bool, error) {
	titles := map[string]bool{}
	for _, d := range spec.Declarations {
		titles[d.Title] = true
	}
	for _, b := range spec.Payload {
		titles[b.Title] = true
	}
	images := map[digest.Digest]bool{}
	for _, i := range spec.Images {
		d := digest.FromBytes(i.Manifest)
		switch {
		case i.Open == nil:
			return nil, fault.Refusedf("image %q cannot be opened", i.Title)
		case i.MediaType != v1.MediaTypeImageManifest && i.MediaType != mediaTypeDockerManifest:
			return nil, fault.Refusedf("image %q is of type %q, not one image's manifest", i.Title, i.MediaType)
		case !ValidImageTitle(i.Title):
			return nil, fault.Refusedf("%q is no title of an image", i.Title)
		case titles[i.Title]:
			return nil, fault.Refusedf("the title %q is there twice", i.Title)
		case images[d]:
			return nil, fault.Refusedf("image %q is there under another title", i.Title)
		}
		titles[i.Title], images[d] = true, true
	}
	return images, nil
}
