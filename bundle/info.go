package bundle

import (
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
)

// Info is what is known of a bundle whose signature was verified.
type Info struct {
	// Digest is D, the digest of the signed bundle index.
	Digest  digest.Digest `json:"digest"`
	Name    string        `json:"name"`
	Version string        `json:"version"`
	// Architecture is as uname(1) spells it: "x86_64", "aarch64".
	Architecture string `json:"architecture"`
	// Counter grows with each release of one name.
	Counter uint64 `json:"counter"`
	// Created is for people; nothing is decided by it.
	Created time.Time `json:"created"`
	// MinimumHost is the lowest version of a host that may apply it, or "".
	MinimumHost string `json:"minimum_host,omitempty"`
	// Declarations and Members are known after the manifests were read: not
	// yet when Options.Admit is called.
	Declarations []Member `json:"declarations,omitempty"`
	// Members are all blobs the bundle carries, in their order, declarations
	// included, manifests not.
	Members []Member `json:"members,omitempty"`
	// Size is the sum of the sizes of Members, in bytes.
	Size int64 `json:"size,omitempty"`
	// Signers are the trusted keys that signed D; at least one.
	Signers []trust.Signer `json:"signers"`
	// Policy is the policy given, moved along the release roots the bundle
	// carries; whoever keeps the root in force records its root.
	Policy *trust.Policy `json:"-"`

	store        *content.Store
	declarations map[digest.Digest][]byte
}

// A Member is one blob of a bundle.
type Member struct {
	Digest    digest.Digest `json:"digest"`
	Size      int64         `json:"size"`
	MediaType string        `json:"media_type"`
	// Title is the name its author gave it, or says which part it is of what image,
	// as in "web, layer 2 of 3". It is no path.
	Title string `json:"title,omitempty"`
	// Content and ContentSize are of what a compressed file expands to, which is
	// what declarations name; "" and 0 of any other.
	Content     digest.Digest `json:"content,omitempty"`
	ContentSize int64         `json:"content_size,omitempty"`
}

// Kind says in a word or two what the blob is, for people.
func (m Member) Kind() string {
	switch m.MediaType {
	case MediaTypeDeclaration:
		return "declaration"
	case MediaTypeFile:
		return "file"
	case MediaTypeFileZstd:
		return "compressed file"
	case MediaTypePackageArch:
		return "package"
	case MediaTypePackageArchSignature:
		return "signature"
	case v1.MediaTypeImageConfig, mediaTypeDockerConfig:
		return "image configuration"
	}
	return "image layer" // in whatever way it is packed
}

// refName is the bundle's name in a content store, for other tools.
func (i *Info) refName() string {
	return i.Name + "-" + i.Version + "-linux-" + i.Architecture
}

// titles are the first title of each blob.
func (i *Info) titles() map[digest.Digest]string {
	out := map[digest.Digest]string{}
	for _, m := range i.Members {
		if out[m.Digest] == "" {
			out[m.Digest] = m.Title
		}
	}
	return out
}

// Declaration returns the bytes of one of Declarations: verified, and read
// again from the content store when the bundle lies in one. After Inspect there
// are none.
func (i *Info) Declaration(d digest.Digest) ([]byte, error) {
	if b, ok := i.declarations[d]; ok {
		return b, nil
	}
	for _, m := range i.Declarations {
		if m.Digest == d && i.store != nil {
			return i.store.Read(d, m.Size)
		}
	}
	return nil, fmt.Errorf("cannot read declaration %q: the bundle holds no such declaration", d)
}
