package bundle

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A person who gives the wrong file is told which one it is. Nothing is decided
// by it: the file is refused already.

// What the file is that was wanted, for a remedy.
const wanted = "what is wanted here is the file that ends in .bundle.tar"

// kinds of files that are no bundle, by what they begin with.
var kinds = []struct{ magic, what, remedy string }{
	{"\x28\xb5\x2f\xfd", "it is compressed with zstd", "uncompress it with zstd -d; a package (.pkg.tar.zst) is for pacman"},
	{"\xfd7zXZ\x00", "it is compressed with xz", "uncompress it with xz -d"},
	{"BZh", "it is compressed with bzip2", "uncompress it with bzip2 -d"},
	{"PK\x03\x04", "it is a zip archive", "unzip it; " + wanted},
	{"\x7fELF", "it is a program", wanted},
	{"!<arch>\n", "it is a Debian package or an ar archive", wanted},
	{"<!", "it is a web page", "the download gave a page instead of the file: download it again"},
	{"<html", "it is a web page", "the download gave a page instead of the file: download it again"},
	{"<HTML", "it is a web page", "the download gave a page instead of the file: download it again"},
	{"{", "it is a JSON document", wanted},
	{"-----BEGIN ", "it is a key or a signature", wanted},
	{"version https://git-lfs", "it is a pointer of Git LFS", "fetch the file it points to with git lfs pull"},
}

// begins says what a file is that begins with b, whose header is none of ours;
// nil when that is not known.
func begins(b []byte) error {
	if bytes.HasPrefix(b, []byte("\x1f\x8b")) {
		return gzipped(b)
	}
	for _, k := range kinds {
		if bytes.HasPrefix(b, []byte(k.magic)) {
			return fault.Refusedf("cannot read bundle: %s", k.what).Hint("%s", k.remedy)
		}
	}
	return nil
}

// gzipped tells a tarball of the host from a bundle that was compressed, by the
// name of the first member: at most a hundred bytes are uncompressed.
func gzipped(b []byte) error {
	first := make([]byte, 100)
	if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
		n, _ := io.ReadFull(z, first) // what comes before the cut is enough
		first = first[:n]
	}
	name, _, _ := bytes.Cut(first, []byte{0})
	if err := packed(string(name)); err != nil {
		return err
	}
	e := fault.Refusedf("cannot read bundle: it is compressed with gzip")
	if string(name) == layoutName {
		return e.Hint("uncompress it with gzip -d: a bundle is never compressed")
	}
	return e.Hint("%s", wanted)
}

// packed says what a tar is whose first member has that name, nil when it is not
// known.
func packed(name string) error {
	dir, _, _ := strings.Cut(strings.TrimPrefix(name, "./"), "/")
	switch {
	case strings.HasPrefix(dir, "nox-mesh-host-"):
		return fault.Refusedf("cannot read bundle: it is the tarball that installs the host").
			Hint("unpack it and run its mesh-host install; bootstrap and apply want the file that ends in .bundle.tar")
	case dir == ".PKGINFO", dir == ".BUILDINFO", dir == ".MTREE":
		return fault.Refusedf("cannot read bundle: it is a package").Hint("packages are for pacman; " + wanted)
	case dir == "manifest.json", dir == "repositories":
		return fault.Refusedf("cannot read bundle: it is an archive of container images").Hint("%s", wanted)
	}
	return nil
}

// repacked gives the refusal of a file's first member the remedy for an image
// layout that another program wrote.
func repacked(name string, err error) error {
	switch dir, _, _ := strings.Cut(strings.TrimPrefix(name, "./"), "/"); dir {
	case "blobs", indexName, layoutName, "", "PaxHeaders", "PaxHeader":
		return packedAgain(err)
	}
	return err
}

// The place in an ISO 9660 image (ECMA-119, 6.2.1 and 8.1.2) where it says what
// it is: before it come 16 sectors of anything, zeros for one.
const (
	isoOffset = 16*2048 + 1
	isoMagic  = "CD001"
)

// image says whether a file that begins with the block b, and goes on in r, is an
// image of a disk or nothing but zeros; nil when it is neither. It reads 32 KiB.
func image(b *block, r io.Reader) error {
	rest := make([]byte, isoOffset+len(isoMagic)-blockSize)
	n, err := io.ReadFull(r, rest)
	if err == nil && string(rest[n-len(isoMagic):]) == isoMagic {
		return fault.Refusedf("cannot read bundle: it is an ISO image").Hint("mount it; %s", wanted)
	}
	if *b != (block{}) {
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || len(bytes.Trim(rest[:n], "\x00")) > 0 {
		return nil
	}
	if n <= blockSize {
		return nil // the end of an archive: it is empty
	}
	return fault.Refusedf("cannot read bundle: it begins with %d zero bytes", blockSize+n).
		Hint("the download did not fill it: " + again)
}
