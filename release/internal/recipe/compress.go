package recipe

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// compressed describes a file that the bundle holds compressed. It is compressed
// twice, now for its digest and again as it is written, and never to the disk: one
// encoder, of one version, gives the same bytes for the same content.
func (i *files) compressed(title, path string) (bundle.Blob, error) {
	f, _, err := input.Regular(path)
	if err != nil {
		return bundle.Blob{}, err
	}
	defer f.Close()
	plain, packed := digest.SHA256.Digester(), digest.SHA256.Digester()
	var size counted
	c, err := compress(io.TeeReader(i.of(title, f), io.MultiWriter(plain.Hash(), &size)), f)
	if err != nil {
		return bundle.Blob{}, err
	}
	n, err := io.Copy(packed.Hash(), c)
	if err != nil {
		return bundle.Blob{}, err
	}
	return bundle.Blob{
		Digest: packed.Digest(), Size: n, Title: title, MediaType: bundle.MediaTypeFileZstd,
		Expanded: bundle.Expanded{Digest: plain.Digest(), Size: int64(size)},
		Open: func() (io.ReadCloser, error) {
			f, _, err := input.Regular(path)
			if err != nil {
				return nil, err
			}
			return compress(f, f)
		},
	}, nil
}

// window is how far back the encoder looks: half of what readers allow.
const window = 4 << 20

// A compressor reads what another reader gives, compressed, with no goroutine.
type compressor struct {
	from io.Reader
	io.Closer
	z     *zstd.Encoder
	chunk []byte
	ready bytes.Buffer
	ended bool
}

func compress(from io.Reader, with io.Closer) (*compressor, error) {
	c := &compressor{from: from, Closer: with, chunk: make([]byte, 128<<10)}
	var err error
	c.z, err = zstd.NewWriter(&c.ready, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	return c, err
}

func (c *compressor) Read(p []byte) (int, error) {
	for c.ready.Len() == 0 && !c.ended {
		n, err := io.ReadFull(c.from, c.chunk)
		if _, err := c.z.Write(c.chunk[:n]); err != nil {
			return 0, err
		}
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			c.ended = true
			err = c.z.Close()
		}
		if err != nil {
			return 0, err
		}
	}
	return c.ready.Read(p)
}

// counted counts what is written to it.
type counted int64

func (c *counted) Write(p []byte) (int, error) {
	*c += counted(len(p))
	return len(p), nil
}

// digestOf is what declarations name a blob by.
func digestOf(b bundle.Blob) digest.Digest {
	if b.MediaType == bundle.MediaTypeFileZstd {
		return b.Expanded.Digest
	}
	return b.Digest
}
