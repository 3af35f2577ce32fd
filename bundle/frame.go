package bundle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// What of a zstd frame is read here (RFC 8878, 3.1.1): enough to know its window
// before memory is taken for it, and where it ends. Decoders go on after a frame
// with the next one, and pass over frames they are to skip; here there is one.
const (
	zstdMagic = 0xFD2FB528
	// maxWindow is how far back a frame may reach, in bytes: that much memory is
	// taken.
	maxWindow = 8 << 20
	// maxZstdBlock is the largest block of any frame.
	maxZstdBlock = 128 << 10
)

// A frame is a reader of exactly one zstd frame: it gives the bytes of r on, and
// ends, or fails, where the frame does.
type frame struct {
	r io.Reader
	// content is the size of what is compressed, -1 when the frame does not say.
	content int64

	// ready are bytes of headers that were read and not yet given on; left is
	// what follows of the block.
	ready    []byte
	left     int64
	last     bool
	checksum bool
	begun    bool
}

func (f *frame) Read(p []byte) (int, error) {
	for len(f.ready) == 0 && f.left == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	if len(f.ready) > 0 {
		n := copy(p, f.ready)
		f.ready = f.ready[n:]
		return n, nil
	}
	n, err := f.r.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
		if f.left > 0 {
			err = errCut
		}
	}
	return n, err
}

// next reads the header of the frame, of its next block, or its end.
func (f *frame) next() error {
	switch {
	case !f.begun:
		f.begun = true
		return f.header()
	case f.last && f.checksum:
		f.checksum = false
		f.left = 4
		return nil
	case f.last:
		return f.end()
	}
	b, err := f.take(3)
	if err != nil {
		return err
	}
	n := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16
	f.last = n&1 == 1
	kind, size := n>>1&3, n>>3
	switch {
	case kind == 3 || size > maxZstdBlock:
		return errors.New("a block of it is of no known kind, or too large")
	case kind == 1: // one byte, said size times
		size = 1
	}
	f.left = size
	return nil
}

// take reads n bytes that are given on later.
func (f *frame) take(n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(f.r, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errCut
		}
		return nil, err
	}
	f.ready = append(f.ready, b...)
	return b, nil
}

// errCut is no kind of io.EOF, which a decoder would take for an end.
var errCut = errors.New("its frame is cut")

func (f *frame) header() error {
	b, err := f.take(5)
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(b) != zstdMagic {
		return errors.New("it is no zstd frame")
	}
	descriptor := b[4]
	single := descriptor>>5&1 == 1
	f.checksum = descriptor>>2&1 == 1
	switch {
	case descriptor&3 != 0:
		return errors.New("its frame needs a dictionary")
	case descriptor>>3&1 != 0:
		return errors.New("its frame has a bit set that is reserved")
	}
	window := int64(0)
	if !single {
		if b, err = f.take(1); err != nil {
			return err
		}
		base := int64(1) << (10 + b[0]>>3)
		window = base + base/8*int64(b[0]&7)
	}
	fields := [4]int{0, 2, 4, 8}
	n := fields[descriptor>>6]
	if n == 0 && single {
		n = 1
	}
	f.content = -1
	if n > 0 {
		if b, err = f.take(n); err != nil {
			return err
		}
		var wide [8]byte
		copy(wide[:], b)
		size := binary.LittleEndian.Uint64(wide[:])
		if n == 2 {
			size += 256
		}
		if size > maxMember {
			return fmt.Errorf("its frame says %d bytes, at most %d are read", size, int64(maxMember))
		}
		f.content = int64(size)
		if single {
			window = f.content
		}
	}
	if window > maxWindow {
		return fmt.Errorf("its frame has a window of %d bytes, at most %d are read", window, maxWindow)
	}
	return nil
}

// end is reached after the frame: nothing may follow.
func (f *frame) end() error {
	var b [1]byte
	for {
		n, err := f.r.Read(b[:])
		if n > 0 {
			return errors.New("trailing bytes after its frame")
		}
		if err != nil {
			return err // io.EOF
		}
	}
}
