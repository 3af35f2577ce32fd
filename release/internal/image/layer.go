package image

import (
	"bufio"
	"bytes"
	"io"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// block is what a tar archive begins with.
const block = 512

// asSaid gives what r gives, if that begins as the media type of d says a layer
// does: an engine that unpacks by the type would end in the middle of it. What is no
// layer is given as it is. r is closed with an error.
func asSaid(r io.ReadCloser, d v1.Descriptor) (io.ReadCloser, error) {
	want, is := packing(d.MediaType)
	if !is {
		return r, nil
	}
	content := bufio.NewReaderSize(r, 64<<10)
	begin, _ := content.Peek(block)
	if int64(len(begin)) < min(d.Size, block) {
		// It ends too soon, or cannot be read: who reads it is told how.
		return section{content, r}, nil
	}
	if got := packed(begin); got != want {
		r.Close()
		return nil, fault.Refusedf("its type is %q, and its content is %s", d.MediaType, described(got))
	}
	return section{content, r}, nil
}

// packing is how a layer of a media type is compressed; "" is not at all.
func packing(mediaType string) (how string, isLayer bool) {
	switch mediaType {
	case v1.MediaTypeImageLayer, typeDockerLayer:
		return "", true
	case v1.MediaTypeImageLayerGzip, typeDockerLayer + ".gzip":
		return "gzip", true
	case v1.MediaTypeImageLayerZstd, typeDockerLayer + ".zstd":
		return "zstd", true
	}
	return "", false
}

// packed tells how content is compressed that begins so. A tar archive begins with a
// name, which may look like anything. A skippable frame may come first (RFC 8878,
// 3.1.2): pzstd(1) writes such ones.
func packed(begin []byte) string {
	if len(begin) == block && bytes.HasPrefix(begin[257:], []byte("ustar")) {
		return ""
	}
	if len(begin) >= 4 && begin[0]&0xf0 == 0x50 && bytes.Equal(begin[1:4], []byte("\x2a\x4d\x18")) {
		return "zstd"
	}
	return compression(begin)
}

func described(how string) string {
	if how == "" {
		return "not compressed"
	}
	return "compressed with " + how
}
