package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// archive/tar reads PAX and GNU records, links, and archives without an end,
// and takes base-256 sizes: all of it is a second way to say something, so
// the one form we write is the one form we read (POSIX.1-1988 ustar).

const blockSize = 512

type block [blockSize]byte

// The fields of a header: where they begin.
const (
	offSize     = 124
	offChecksum = 148
	offType     = 156
	offMagic    = 257
)

// header is the header of a member: the only one there is for its name and
// size.
func header(name string, size int64) block {
	var b block
	copy(b[:100], name)
	copy(b[100:], "0000644\x000000000\x000000000\x00")
	copy(b[offSize:], fmt.Sprintf("%011o\x00", size))
	copy(b[136:], "00000000000\x00")
	b[offType] = '0'
	copy(b[offMagic:], "ustar\x0000")
	copy(b[329:], "0000000\x000000000\x00")
	copy(b[offChecksum:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[offChecksum:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// summed says whether the checksum of a header is right: then a tar wrote it as it
// is, and it was not damaged since.
func (b *block) summed() bool {
	want, err := strconv.ParseInt(strings.Trim(string(b[offChecksum:offChecksum+8]), " \x00"), 8, 64)
	sum := int64(8 * ' ') // the checksum counts as blanks
	for i, c := range b {
		if i < offChecksum || i >= offChecksum+8 {
			sum += int64(c)
		}
	}
	return err == nil && sum == want
}

// parseHeader returns name and size of a header, which must be what header
// writes for them.
func parseHeader(b *block) (string, int64, error) {
	raw, _, _ := bytes.Cut(b[:100], []byte{0})
	name := string(raw)
	switch b[offType] {
	case 'x', 'g', 'X':
		return name, 0, refuse("not canonical: member %q has a PAX header", name)
	case 'L', 'K', 'S', 'D', 'M', 'V':
		return name, 0, refuse("not canonical: member %q has a GNU header", name)
	case '1', '2', '3', '4', '5', '6', '7':
		return name, 0, refuse("not canonical: member %q is a link, directory or device", name)
	}
	size, err := strconv.ParseInt(string(b[offSize:offSize+11]), 8, 64)
	if err != nil || size < 0 {
		return name, 0, refuse("not canonical: the size of member %q is no octal number", name)
	}
	if *b != header(name, size) {
		return name, 0, refuse("not canonical: the header of member %q", name)
	}
	return name, size, nil
}

// padding is the number of zero bytes after size bytes of content.
func padding(size int64) int64 { return -size & (blockSize - 1) }

// A tarReader reads one member after the other from a file or a pipe.
type tarReader struct {
	ctx    context.Context
	r      io.Reader
	seeker io.Seeker // nil on a pipe
	onRead func(n int64)
	// first says that nothing was read yet: then it may be any file.
	first bool

	member string // the member that is being read, or the last one
	size   int64
	left   int64
	// titles are what the author called the blobs; nil until that is known.
	titles map[digest.Digest]string
	// failed is why the last Read failed: whoever read through others says it
	// in its own words.
	failed error
}

// called is how an error names a member: "blobs/sha256/…" ("its title").
func (t *tarReader) called(name string) string {
	quoted := strconv.Quote(clip(name))
	hex, ok := strings.CutPrefix(name, blobPrefix)
	if title := t.titles[digest.NewDigestFromEncoded(digest.SHA256, hex)]; ok && title != "" {
		return quoted + " (" + strconv.Quote(title) + ")"
	}
	return quoted
}

func newTarReader(ctx context.Context, r io.Reader) *tarReader {
	t := &tarReader{ctx: ctx, r: r}
	if s, ok := r.(io.Seeker); ok {
		// A pipe is an *os.File too, and cannot seek.
		if _, err := s.Seek(0, io.SeekCurrent); err == nil {
			t.seeker = s
		}
	}
	if f, ok := r.(*os.File); ok && t.seeker == nil {
		widen(f)
	}
	return t
}

// widen lets a pipe hold more than 64 KiB, so that its two ends wait for each
// other less often (F_SETPIPE_SZ, fcntl(2)). What is no pipe, or may not, stays as
// it is.
func widen(f *os.File) {
	const most = 1 << 20 // fs.pipe-max-size
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, most) })
	}
}

// next reads the header of the next member; end says that there is none.
func (t *tarReader) next() (name string, size int64, end bool, err error) {
	var b block
	where := "the header after member " + t.called(t.member)
	if t.member == "" {
		where = "the first header"
	}
	n, err := t.fill(b[:], where)
	if t.first && n > 0 {
		// What is smaller than a block is told by name too.
		if other := t.other(&b, n); other != nil {
			return "", 0, false, other
		}
	}
	first := t.first
	t.first = false
	if err != nil {
		return "", 0, false, err
	}
	if b == (block{}) {
		return "", 0, true, nil
	}
	name, size, err = parseHeader(&b)
	switch {
	case err != nil && first:
		err = repacked(name, err)
	case err != nil && b.summed():
		err = packedAgain(err)
	}
	if err != nil {
		return "", 0, false, err
	}
	t.member, t.size, t.left = name, size, size
	return name, size, false, nil
}

// Read reads the content of the member.
func (t *tarReader) Read(p []byte) (int, error) {
	if t.left == 0 {
		return 0, io.EOF
	}
	if err := t.ctx.Err(); err != nil {
		return 0, fmt.Errorf("cannot read bundle: %w", err)
	}
	n, err := t.r.Read(p[:min(int64(len(p)), t.left)])
	t.left -= int64(n)
	if t.onRead != nil {
		t.onRead(int64(n))
	}
	if errors.Is(err, io.EOF) {
		err = nil
		if t.left > 0 {
			err = truncated(t.size-t.left, t.size, "member "+t.called(t.member))
		}
	}
	if err != nil && fault.KindOf(err) != fault.Refused {
		err = fmt.Errorf("cannot read bundle: %w", err)
	}
	t.failed = err
	return n, err
}

// all returns the content of the member, which the caller found small enough,
// and ends it. Memory grows with what arrives, not with what was announced.
func (t *tarReader) all() ([]byte, error) {
	b, err := io.ReadAll(t)
	if err != nil {
		return nil, err
	}
	return b, t.finish()
}

// skip passes over the content that is left, and ends the member.
func (t *tarReader) skip() error {
	if t.seeker != nil && t.left > 0 {
		if _, err := t.seeker.Seek(t.left, io.SeekCurrent); err != nil {
			return fmt.Errorf("cannot read bundle: %w", err)
		}
		if t.onRead != nil {
			t.onRead(t.left)
		}
		t.left = 0
	}
	if _, err := io.Copy(io.Discard, t); err != nil {
		return err
	}
	return t.finish()
}

// finish ends a member whose content was read: its padding is zero.
func (t *tarReader) finish() error {
	if t.left != 0 {
		return fmt.Errorf("internal error: %d bytes of member %s were not read", t.left, t.called(t.member))
	}
	var b block
	pad := b[:padding(t.size)]
	if err := t.full(pad, "the padding of member "+t.called(t.member)); err != nil {
		return err
	}
	if b != (block{}) {
		return refuse("not canonical: the padding of member %s is not zero", t.called(t.member))
	}
	return nil
}

// end reads what follows the first zero block: the second one, and nothing.
func (t *tarReader) end() error {
	var b block
	if err := t.full(b[:], "the end"); err != nil {
		return err
	}
	if b != (block{}) {
		return refuse("not canonical: one end block instead of two")
	}
	for {
		n, err := t.r.Read(b[:])
		switch {
		case n > 0:
			err := refuse("not canonical: trailing bytes after the end")
			if len(bytes.Trim(b[:n], "\x00")) == 0 {
				return packedAgain(err) // a tar fills its last record with zeros
			}
			return err
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("cannot read bundle: %w", err)
		}
		if err := t.ctx.Err(); err != nil {
			return fmt.Errorf("cannot read bundle: %w", err)
		}
	}
}

// other says what the file is when its first block, of which n bytes are there,
// is no header of a tar.
func (t *tarReader) other(b *block, n int) error {
	if string(b[offMagic:offMagic+5]) == "ustar" {
		name, _, _ := bytes.Cut(b[:100], []byte{0})
		return packed(string(name))
	}
	if err := begins(b[:n]); err != nil {
		return err
	}
	if *b == (block{}) || b[510] == 0x55 && b[511] == 0xaa { // a boot sector
		return image(b, t.r)
	}
	return nil
}

func (t *tarReader) full(b []byte, where string) error {
	_, err := t.fill(b, where)
	return err
}

// fill reads all of b, and returns how much of it was there.
func (t *tarReader) fill(b []byte, where string) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, fmt.Errorf("cannot read bundle: %w", err)
	}
	n, err := io.ReadFull(t.r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return n, truncated(int64(n), int64(len(b)), where)
	}
	if err != nil {
		return n, fmt.Errorf("cannot read bundle: %w", err)
	}
	return n, nil
}

func refuse(format string, args ...any) error {
	return fault.Refusedf("cannot read bundle: "+format, args...)
}

func truncated(got, want int64, where string) error {
	return fault.Refusedf("cannot read bundle: truncated (got %d of %d bytes at %s)", got, want, where).Hint(again)
}
