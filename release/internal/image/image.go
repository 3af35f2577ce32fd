// Package image reads container images from where people have them: an OCI image
// layout (a directory, or a tar of one), an archive as "podman save" and "docker
// save" write them, and a registry.
//
// Read finds the one image that is meant, picks the one for Linux and the wanted
// architecture where there are several, and gives its manifest and how to open
// what the manifest mentions. Manifest and configuration are held to be those of
// a container image that a machine can run. Of a layer the first bytes must be what its
// media type says; more is not looked into, nor read before it is opened.
//
// It promises that a manifest which is there comes out untouched, to the byte, so
// that the image keeps its digest; that every byte it gives has the digest and the
// size that a parent named, or the reading ends with an error; that nothing is
// copied to the disk on the way; and that memory does not grow with the layers.
//
// An archive of "docker save" has no manifest. It is given one: OCI's, with the
// configuration as it is, whose digest is what the engines call the image's id, and
// with the layers as they are, uncompressed in most cases. No compressor, date or
// name goes into it, so the same layers and configuration give the same manifest
// everywhere and always. An archive with a directory blobs beside manifest.json, as
// newer Dockers write it, is an OCI layout as well: read as "oci-archive" it keeps
// the manifest it has.
//
// What is read was made by others, and may change while it is read: no name in it
// leads out of it, documents are bounded, and a link counts for no more than what
// it leads to. An image that is changed between Read and the opening of a blob is
// found by its digests.
//
// Not read are images whose layers are encrypted, or lie elsewhere on the web, and
// those of Docker's schema 1.
package image

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// The limits of what is read into memory, in bytes.
const (
	maxDocument = 4 << 20
	// maxBlob is what a member of a bundle can hold.
	maxBlob = 1<<33 - 1
)

// An Image is a container image for one platform.
type Image struct {
	// MediaType is that of Manifest: OCI's or Docker's.
	MediaType string
	// Manifest is as it was found, and Digest its digest.
	Manifest []byte
	Digest   digest.Digest
	// Config and Layers are what it mentions.
	Config v1.Descriptor
	Layers []v1.Descriptor

	blobs blobs
}

// blobs gives the content of what descriptors name.
type blobs interface {
	// open gives content that is said to be d's: nobody has looked yet.
	open(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
}

// Read finds the image that ref names, for a machine that uname(1) calls
// architecture ("x86_64", "aarch64").
func Read(ctx context.Context, ref Reference, architecture string) (*Image, error) {
	i, err := read(ctx, ref, architecture)
	if err != nil {
		return nil, fmt.Errorf("cannot read image %q: %w", ref, err)
	}
	return i, nil
}

func read(ctx context.Context, ref Reference, architecture string) (*Image, error) {
	want, err := platformOf(architecture)
	if err != nil {
		return nil, err
	}
	var i *Image
	switch ref.transport {
	case transportDocker:
		i, err = readRegistry(ctx, ref, want)
	case transportDockerArchive:
		i, err = readDockerArchive(ctx, ref, want)
	case transportArchive:
		var a *archive
		if a, err = readArchive(ref.path); err == nil {
			i, err = readLayout(ctx, a, ref, want)
		}
	default:
		// One that is not there is no layout without files.
		if _, err = os.Stat(ref.path); err == nil {
			i, err = readLayout(ctx, directory(ref.path), ref, want)
		}
	}
	if err != nil {
		return nil, err
	}
	if ref.transport != transportDocker && ref.digest != "" && ref.digest != i.Digest {
		return nil, fault.Refusedf("it is %s", i.Digest)
	}
	return i, nil
}

// Open gives the content of the configuration or of a layer. Reading it to its end
// fails unless it is what the manifest said.
func (i *Image) Open(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	r, err := i.blobs.open(ctx, d)
	if err == nil {
		r, err = asSaid(r, d)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", d.Digest, err)
	}
	return verified(r, d), nil
}
