package file

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"sync"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// A descriptor is a regular file open for reading. os.NewFile would ask the
// kernel four more questions, for each file of each pass.
type descriptor int

func (d descriptor) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, &fs.PathError{Op: "read", Err: err}
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// Close closes the file.
func (d descriptor) Close() error { return unix.Close(int(d)) }

var buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// copyHashed copies at most max bytes of r to w, which may be nil, and returns
// the digest of what it read. It stops soon after ctx ends.
func copyHashed(ctx context.Context, w io.Writer, r io.Reader, max int64) (digest.Digest, error) {
	buf := buffers.Get().(*[128 << 10]byte)
	defer buffers.Put(buf)
	h := sha256.New()
	r = io.LimitReader(r, max)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := r.Read(buf[:])
		h.Write(buf[:n])
		if w != nil && n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return "", err
			}
		}
		if errors.Is(err, io.EOF) {
			return digest.NewDigest(digest.SHA256, h), nil
		}
		if err != nil {
			return "", err
		}
	}
}
