package image

import (
	"context"
	"encoding/json"
	"fmt"
	"hash"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// verified gives what r gives, and an error in the place of its end unless that
// was what d says.
func verified(r io.ReadCloser, d v1.Descriptor) io.ReadCloser {
	return &verifier{ReadCloser: r, want: d, left: d.Size, hash: digest.SHA256.Hash()}
}

type verifier struct {
	io.ReadCloser
	want v1.Descriptor
	left int64
	hash hash.Hash
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	v.hash.Write(p[:n])
	if v.left -= int64(n); v.left < 0 {
		return 0, fault.Refusedf("%s has more than the %d bytes it is said to have", v.want.Digest, v.want.Size)
	}
	if err != io.EOF {
		return n, err
	}
	if v.left > 0 {
		return n, fault.Refusedf("%s ends after %d of %d bytes", v.want.Digest, v.want.Size-v.left, v.want.Size)
	}
	if got := digest.NewDigest(digest.SHA256, v.hash); got != v.want.Digest {
		return n, fault.Refusedf("%s: its content is %s", v.want.Digest, got)
	}
	return n, io.EOF
}

// document reads what d names into memory.
func document(ctx context.Context, from blobs, d v1.Descriptor) ([]byte, error) {
	if err := checkDescriptor(d, maxDocument); err != nil {
		return nil, err
	}
	r, err := from.open(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Digest, err)
	}
	defer r.Close()
	return io.ReadAll(verified(r, d))
}

// checkDescriptor holds what every descriptor must be that is followed.
func checkDescriptor(d v1.Descriptor, max int64) error {
	switch {
	case d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256:
		return fault.Refusedf("%.128q is no SHA-256 digest", d.Digest)
	case d.Size < 0 || d.Size > max:
		return fault.Refusedf("%s is said to have %d bytes, at most %d are read", d.Digest, d.Size, max)
	case d.MediaType == "":
		return fault.Refusedf("%s has no media type", d.Digest)
	}
	return nil
}

// bounded reads all of r, which may not be more than max bytes.
func bounded(r io.Reader, max int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, max+1))
	if err == nil && int64(len(b)) > max {
		err = fault.Refusedf("it has more than %d bytes", max)
	}
	return b, err
}

func parse(b []byte, to any) error {
	if err := json.Unmarshal(b, to); err != nil {
		return fault.Refusedf("%w", err)
	}
	return nil
}
