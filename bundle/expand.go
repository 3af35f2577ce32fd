package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A compressed file (MediaTypeFileZstd) is in the bundle twice over: as the blob
// that the tar holds, and as what comes out of it, which is what declarations
// name. Digest and size of both are signed. The blob is expanded only after the
// whole bundle was read, into the store beside it, before the bundle is marked
// complete; the blob stays, so that the store is an OCI layout to its last layer.

// The annotations on a compressed layer.
const (
	annotationContentDigest = content.Within
	annotationContentSize   = "vnd.nox-mesh.content.size"
)

// An expansion is a compressed blob and what is in it.
type expansion struct {
	from v1.Descriptor
	to   digest.Digest
	size int64
}

// expansionOf reads what a compressed layer says of its content.
func expansionOf(l v1.Descriptor) (expansion, error) {
	e := expansion{from: l, to: digest.Digest(l.Annotations[annotationContentDigest])}
	said := l.Annotations[annotationContentSize]
	var err error
	e.size, err = strconv.ParseInt(said, 10, 64)
	switch {
	case !canonical.Digest(e.to) || e.to == l.Digest:
		return e, refuse("layer %q: the digest of its content is %q", titled(l), clip(string(e.to)))
	case err != nil || e.size < 0 || e.size > maxMember || strconv.FormatInt(e.size, 10) != said:
		return e, refuse("layer %q: the size of its content is %q", titled(l), clip(said))
	}
	return e, nil
}

// expansion notes what a compressed layer is expanded to.
func (t *tree) expansion(l v1.Descriptor) error {
	e, err := expansionOf(l)
	if err != nil {
		return err
	}
	if known, ok := t.expansions[l.Digest]; ok && (known.to != e.to || known.size != e.size) {
		return refuse("layer %q: its content is said to be two things", titled(l))
	}
	if m, ok := t.mentioned[e.to]; ok && (m.size != e.size || m.manifest) {
		return refuse("layer %q: its content %s is mentioned with %d bytes, or as a manifest", titled(l), e.to, m.size)
	}
	if known, ok := t.expanded[e.to]; ok && known != e.size {
		return refuse("layer %q: its content %s is mentioned with two sizes", titled(l), e.to)
	}
	if t.expansions == nil {
		t.expansions, t.expanded = map[digest.Digest]expansion{}, map[digest.Digest]int64{}
	}
	t.expansions[l.Digest], t.expanded[e.to] = e, e.size
	return nil
}

// settled holds that what is mentioned after its expansion agrees with it.
func (t *tree) settled() error {
	for d, size := range t.expanded {
		if m, ok := t.mentioned[d]; ok && (m.size != size || m.manifest) {
			return refuse("%s is mentioned twice, with %d and with %d bytes, or as manifest and as blob", d, m.size, size)
		}
	}
	return nil
}

// A bad is what is wrong with a compressed blob itself, not with reading it. It
// hides what it holds: an unexpected end within is no end to who reads what comes
// out.
type bad struct{ error }

// compressed is a reader of what r, the compressed blob, expands to: of at most
// the signed size, and of one frame with nothing after it.
type compressed struct {
	e     expansion
	frame *frame
	z     *zstd.Decoder
	n     int64
	ended bool
	// onRead, if set, hears how much came out.
	onRead func(n int64)
}

func (e expansion) open(r io.Reader) (*compressed, error) {
	c := &compressed{e: e, frame: &frame{r: r}}
	z, err := zstd.NewReader(c.frame, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, bad{err}
	}
	c.z = z
	return c, nil
}

func (c *compressed) Close() { c.z.Close() }

// Read gives no byte beyond the signed size, and the last ones only when the frame
// ends there.
func (c *compressed) Read(p []byte) (int, error) {
	if c.ended {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	if c.n == c.e.size {
		return 0, c.finish()
	}
	n, err := c.z.Read(p[:min(int64(len(p)), c.e.size-c.n)])
	c.n += int64(n)
	if c.onRead != nil {
		c.onRead(int64(n))
	}
	switch {
	case err == nil && c.n == c.e.size:
		if err := c.finish(); !errors.Is(err, io.EOF) {
			return 0, err
		}
		return n, nil
	case errors.Is(err, io.EOF) && c.n < c.e.size:
		return 0, bad{fmt.Errorf("it holds %d bytes, not the %d that were signed", c.n, c.e.size)}
	case errors.Is(err, io.EOF):
		if err := c.finish(); !errors.Is(err, io.EOF) {
			return 0, err
		}
		return n, nil
	}
	return n, c.why(err)
}

// finish is called once the signed size is reached: there is no more, and the
// frame is read to its end.
func (c *compressed) finish() error {
	var more [1]byte
	n, err := c.z.Read(more[:])
	switch {
	case n > 0:
		return bad{fmt.Errorf("it holds more than the %d bytes that were signed", c.e.size)}
	case err == nil:
		return bad{errors.New("it does not end")}
	case !errors.Is(err, io.EOF):
		return c.why(err)
	}
	// The decoder may stop before it saw what follows.
	if _, err := io.Copy(io.Discard, c.frame); err != nil {
		return c.why(err)
	}
	if f := c.frame.content; f >= 0 && f != c.e.size {
		return bad{fmt.Errorf("its frame says %d bytes, %d were signed", f, c.e.size)}
	}
	c.ended = true
	return io.EOF
}

// why tells a fault of the reader below from one of what it gave.
func (c *compressed) why(err error) error {
	if err == nil {
		return nil
	}
	var under *readError
	if errors.As(err, &under) {
		return under.error
	}
	return bad{err}
}

// readError marks an error of the reader below a decoder.
type readError struct{ error }

// A source marks the errors of a reader as its own, whatever is built on it.
type source struct {
	ctx context.Context
	r   io.Reader
}

func (s source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, &readError{fmt.Errorf("cannot expand: %w", err)}
	}
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &readError{err}
	}
	return n, err
}

// hash expands the blob r and throws away what comes out, after comparing it with
// what was signed.
func (e expansion) hash(ctx context.Context, r io.Reader) error {
	c, err := e.open(source{ctx, r})
	if err != nil {
		return err
	}
	defer c.Close()
	h := digest.SHA256.Digester()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h.Hash()}, c, make([]byte, 128<<10)); err != nil {
		return err
	}
	if got := h.Digest(); got != e.to {
		return bad{fmt.Errorf("digest mismatch (wanted %s, got %s)", e.to, got)}
	}
	return nil
}

// verifyAgain expands a blob of which the tar just gave the content, from a file:
// it is read a second time, and nothing is expanded that was not verified.
func (d *reading) verifyAgain(ctx context.Context, e expansion) error {
	end, err := d.tar.seeker.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = d.tar.seeker.Seek(end-d.tar.size, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("cannot read bundle: %w", err)
	}
	if err := e.hash(ctx, io.LimitReader(d.tar.r, d.tar.size)); err != nil {
		return err
	}
	if _, err := d.tar.seeker.Seek(end, io.SeekStart); err != nil {
		return fmt.Errorf("cannot read bundle: %w", err)
	}
	return nil
}

// An aside expands what is written to it. The bytes of a pipe come once, so they
// are expanded as they come; whether it is believed is for the digest of all of
// them to say.
type aside struct {
	*io.PipeWriter
	outcome chan error
}

func (e expansion) aside(ctx context.Context) *aside {
	r, w := io.Pipe()
	a := &aside{w, make(chan error, 1)}
	go func() {
		err := e.hash(ctx, r)
		_, _ = io.Copy(io.Discard, r) // whoever writes is never held up
		a.outcome <- err
	}()
	return a
}

// close ends what is written, and returns how it was.
func (a *aside) close() error {
	_ = a.PipeWriter.Close()
	return <-a.outcome
}

// wrongly says that what a trusted key signed does not expand as it was signed.
func (d *reading) wrongly(e expansion, err error) error {
	var b bad
	if !errors.As(err, &b) {
		return err
	}
	return publishers(refuse("member %s does not expand: %w", d.tar.called(blobPrefix+e.from.Digest.Encoded()), b.error))
}

// expandAll brings what the compressed blobs hold into the store. They are all
// there by now, and were verified.
func (d *reading) expandAll(ctx context.Context) error {
	if len(d.unexpanded) == 0 {
		return nil
	}
	// The bundle itself may have brought it as well, as it is.
	if err := d.writer.Flush(); err != nil {
		return err
	}
	for _, b := range d.tree.blobs {
		e, ok := d.tree.expansions[b.Digest]
		if _, wanted := d.unexpanded[e.to]; !ok || !wanted {
			continue
		}
		delete(d.unexpanded, e.to)
		d.progress.Title = d.title(b.Digest)
		if err := d.expand(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (d *reading) expand(ctx context.Context, e expansion) error {
	f, err := d.opts.Store.Open(e.from.Digest)
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := e.open(source{ctx, f})
	if err != nil {
		return d.wrongly(e, err)
	}
	defer c.Close()
	c.onRead = d.advance
	err = d.writer.Put(ctx, e.to, e.size, c)
	if err == nil && c.n == e.size && !c.ended {
		if err = c.finish(); errors.Is(err, io.EOF) { // nothing is in it
			err = nil
		}
	}
	if err == nil {
		d.advance(e.size - c.n) // none, or all: another process was faster
		return nil
	}
	// The blob may have been there before, and be damaged since.
	h := digest.SHA256.Digester()
	if _, serr := f.Seek(0, io.SeekStart); serr != nil {
		return serr
	}
	if _, cerr := io.Copy(h.Hash(), source{ctx, f}); cerr != nil {
		return err
	}
	if h.Digest() != e.from.Digest {
		if derr := d.opts.Store.Drop(e.from.Digest); derr != nil {
			return derr
		}
		return fault.Failedf("cannot expand %s: it was damaged in %s, and is thrown away", e.from.Digest, d.opts.Store.Dir()).
			Hint("read the bundle again")
	}
	if fault.KindOf(err) == fault.Refused { // the digest is another
		return publishers(refuse("member %s does not expand: %w", d.tar.called(blobPrefix+e.from.Digest.Encoded()), err))
	}
	return d.wrongly(e, err)
}
