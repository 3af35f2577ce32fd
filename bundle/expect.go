package bundle

import (
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// keep reads the next member, which must be desc, into memory.
func (d *reading) keep(desc v1.Descriptor) ([]byte, error) {
	if err := d.expect(desc); err != nil {
		return nil, err
	}
	b, err := d.tar.all()
	if err != nil {
		return nil, err
	}
	if got := digest.FromBytes(b); got != desc.Digest {
		return nil, mismatch(d.tar.member, desc.Digest, got)
	}
	d.kept = append(d.kept, b)
	return b, nil
}

// expect reads the next header, which must be that of desc.
func (d *reading) expect(desc v1.Descriptor) error {
	want := blobPrefix + desc.Digest.Encoded()
	name, size, end, err := d.tar.next()
	switch {
	case err != nil:
		return err
	case end:
		return refuse("missing member %q", want)
	case name != want:
		return d.stranger(name, want)
	case size != desc.Size:
		return refuse("member %q has %d bytes, not %d", name, size, desc.Size)
	case d.has(desc.Digest):
		return refuse("duplicate member %q", name)
	}
	d.received[desc.Digest] = size
	return nil
}

// stranger says what is wrong with a member that is not the wanted one.
func (d *reading) stranger(name, want string) error {
	hex, ok := strings.CutPrefix(name, blobPrefix)
	got := digest.NewDigestFromEncoded(digest.SHA256, hex)
	switch {
	case ok && d.has(got), name == layoutName, name == indexName:
		return refuse("duplicate member %q", name)
	case ok && d.tree != nil && d.known(got):
		return refuse("member %q is out of order, %q must come first", name, want)
	}
	return refuse("unexpected member %q instead of %q", clip(name), want)
}

func (d *reading) has(got digest.Digest) bool {
	_, ok := d.received[got]
	return ok
}

func (d *reading) known(got digest.Digest) bool {
	_, ok := d.tree.mentioned[got]
	return ok
}

func mismatch(member string, want, got digest.Digest) error {
	return fault.Refusedf("cannot read bundle: digest mismatch (member %q, wanted %s, got %s)", member, want, got).
		Hint("fetch it again")
}
