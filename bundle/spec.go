package bundle

import (
	"crypto"
	"io"
	"time"

	"github.com/opencontainers/go-digest"

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
	// Payload holds exactly the blobs that the declarations need.
	Payload []Blob
	// Roots is the chain of release roots, oldest first, as the files
	// N.root.json hold them. When there are any, each signer must be a release
	// key of the last.
	Roots [][]byte
	// Signers sign the bundle, one signature each; at least one, at most 16.
	Signers []crypto.Signer
}

// A Declaration is a document to the bundle, and the digests it needs.
type Declaration struct {
	// Title names it, unique among all titles of the bundle: 1 to 255 bytes
	// that can be printed.
	Title string
	Bytes []byte
	// Needs are the digests of the payload blobs that the document names,
	// whatever else has to be with them (a package's signature) included.
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
}

// closed holds that what the declarations need is what the bundle holds.
func closed(spec Spec) error {
	needed, held := map[digest.Digest]bool{}, map[digest.Digest]bool{}
	for _, b := range spec.Payload {
		if b.Open == nil {
			return fault.Refusedf("payload %q cannot be opened", b.Title)
		}
		held[b.Digest] = true
	}
	for _, d := range spec.Declarations {
		for _, n := range d.Needs {
			if !held[n] {
				return fault.Refusedf("declaration %q needs %s, which is not in the payload", d.Title, n)
			}
			needed[n] = true
		}
	}
	for _, b := range spec.Payload {
		if !needed[b.Digest] {
			return fault.Refusedf("payload %q (%s) is needed by no declaration", b.Title, b.Digest)
		}
	}
	return nil
}
