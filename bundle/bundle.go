// Package bundle writes and reads the bundle: one file, for one architecture,
// that carries a declaration and every blob it needs. It is an OCI image layout
// in an uncompressed USTAR tar, parents before children, signed.
//
// Its members, in this order and no other:
//
//	oci-layout
//	index.json           pointers, not trusted
//	blobs/sha256/D       the bundle index: the signed bytes
//	the head             {} ; release roots; for each signature its manifest and itself
//	                     (both have D as their subject), by digest
//	all manifests        in the order of first mention, walking D depth-first
//	small blobs          declarations and configs, likewise
//	large blobs          all others, likewise
//	two zero blocks, and nothing after
//
// A reader is a state machine that never trusts ahead:
//
//	layout → pointers → index → head → manifests → small → large → end → expand → mark
//	                                 │            │
//	                                 │            └ the total is known: is there room?
//	                                 └ signature, then Admit
//
// Until the head is read (at most 6 MiB, usually some KiB) nothing is believed;
// until the manifests are read nothing is written. After the head each member
// must be the one that is expected next, with the digest and the size that a
// verified parent gave it, or the reading ends at its header.
//
// A compressed file is expanded into the store after all of the bundle was read
// and verified, and before it is marked complete; both stay there.
//
// Who signs is no part of what is signed: Resign writes a bundle with other
// signatures, and all that they cover as it was, to the byte. There is one file for
// one D with its signatures and roots, so Import writes it again from an image layout
// in which other programs have carried all of that about.
//
// The names by which other programs find images in the file stand in index.json,
// which is not signed, and must be the titles in D, which is.
//
// Each refusal says which member, by its name in the tar and by its title, and what
// a person can do about it.
//
// It promises that what Read and Stored return was signed by a trusted key;
// that two builds of one Spec are the same bytes; that memory does not grow
// with the content; and that every bundle that is cut, changed, reordered or
// written in any other way than Build writes it is refused with a named error.
// It does not know what a declaration means, what a host is, or which counter
// came before: whoever calls decides that in Options.Admit.
//
// After a kill or a power cut at any instant the content store holds whole
// blobs only, and no completion mark for a bundle that is not complete; reading
// the same bundle again goes on from there.
package bundle

import "github.com/opencontainers/image-spec/specs-go/v1"

// The media types of what is ours.
const (
	// TypeBundle is the artifact type of the bundle index D, and its format
	// version.
	TypeBundle = "application/vnd.nox-mesh.bundle.v1"
	// TypeDeclaration is the artifact type of a declaration's manifest.
	TypeDeclaration = "application/vnd.nox-mesh.declaration.v1"
	// TypePayload is the artifact type of the payload's manifest.
	TypePayload = "application/vnd.nox-mesh.payload.v1"
	// TypeRoot is the artifact type of the release roots' manifest.
	TypeRoot = "application/vnd.nox-mesh.root.v1"

	// MediaTypeDeclaration is a declaration.
	MediaTypeDeclaration = TypeDeclaration + "+json"
	// MediaTypeRoot is a release root.
	MediaTypeRoot = TypeRoot + "+json"
	// MediaTypeFile is a payload blob that is a plain file.
	MediaTypeFile = "application/vnd.nox-mesh.file.v1"
	// MediaTypeFileZstd is a payload blob that is a compressed file: one zstd frame.
	MediaTypeFileZstd = MediaTypeFile + "+zstd"
	// MediaTypePackageArch is a payload blob that is a pacman package.
	MediaTypePackageArch = "application/vnd.nox-mesh.package.arch.v1"
	// MediaTypePackageArchSignature is the detached signature of one.
	MediaTypePackageArchSignature = "application/vnd.nox-mesh.package.arch.signature.v1"

	mediaTypeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	mediaTypeDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	mediaTypeDockerConfig   = "application/vnd.docker.container.image.v1+json"
)

// The annotations of the bundle index.
const (
	annotationName         = "vnd.nox-mesh.bundle.name"
	annotationVersion      = "vnd.nox-mesh.bundle.version"
	annotationArchitecture = "vnd.nox-mesh.bundle.architecture"
	annotationCounter      = "vnd.nox-mesh.bundle.counter"
	annotationCreated      = "vnd.nox-mesh.bundle.created"
	annotationMinimumHost  = "vnd.nox-mesh.bundle.minimum-host"

	// refName is how other tools name D in the file.
	refName = "bundle"
)

// The limits of the reader, which the builder holds too. Sizes are in bytes.
const (
	maxIndex        = 1 << 20 // index.json, and D
	maxHeadManifest = 64 << 10
	maxRoots        = 64
	maxSignatures   = 16
	maxManifest     = 4 << 20
	maxManifests    = 4096
	// maxManifestBytes bounds all manifests together: they are in memory until
	// it is known that there is room for the rest.
	maxManifestBytes = 16 << 20
	// maxDeclarationBytes bounds all declarations together.
	maxDeclarationBytes = 16 << 20
	// maxMember is what the size field of USTAR can say.
	maxMember = 1<<33 - 1
)

const (
	layoutName  = v1.ImageLayoutFile
	layoutBytes = `{"imageLayoutVersion":"1.0.0"}`
	indexName   = v1.ImageIndexFile
	blobPrefix  = "blobs/sha256/"
)

// Architecture is the name bundles have for what Go calls goarch.
func Architecture(goarch string) string {
	switch goarch {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return goarch
}
