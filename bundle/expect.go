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
		return nil, mismatch(d.tar.called(d.tar.member), desc.Digest, got)
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
		return refuse("missing member %s", d.tar.called(want))
	case name != want:
		return d.stranger(name, want)
	case size != desc.Size:
		return refuse("member %s has %d bytes, not %d", d.tar.called(name), size, desc.Size)
	case d.has(desc.Digest):
		return refuse("duplicate member %s", d.tar.called(name))
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
		return refuse("duplicate member %s", d.tar.called(name))
	case ok && d.tree != nil && d.known(got):
		return refuse("member %s is out of order, %s must come first", d.tar.called(name), d.tar.called(want))
	}
	return refuse("unexpected member %s instead of %s", d.tar.called(name), d.tar.called(want))
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
	return fault.Refusedf("cannot read bundle: digest mismatch (member %s, wanted %s, got %s)", member, want, got).Hint(again)
}
