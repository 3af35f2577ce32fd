package content

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

const (
	// bufferSize is how much is read, hashed and written at a time; there are
	// two buffers.
	bufferSize = 1 << 20
	// ahead is how much is written before the kernel is told to begin with it.
	// It would wait half a minute (vm.dirty_expire_centisecs), and the fsync at
	// the end would then wait for all of it.
	ahead = 8 << 20
)

type buffer [bufferSize]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// fill writes r to its end, about size bytes, and returns their digest and
// number. One buffer is hashed while the next is read and the same is written.
func (p *part) fill(ctx context.Context, r io.Reader, size int64) (digest.Digest, int64, error) {
	if size < bufferSize {
		return p.fillSmall(ctx, r)
	}
	h := digest.SHA256.Digester()
	full, hashed := make(chan []byte, 1), make(chan struct{}, 2)
	var hasher sync.WaitGroup
	hasher.Go(func() {
		for b := range full {
			h.Hash().Write(b)
			hashed <- struct{}{}
		}
	})
	var two [2]*buffer
	for i := range two {
		two[i] = buffers.Get().(*buffer)
		hashed <- struct{}{}
	}
	defer func() {
		hasher.Wait() // it owns a buffer until then
		for _, b := range two {
			buffers.Put(b)
		}
	}()
	total, err := p.pour(ctx, r, func(i int) []byte {
		<-hashed
		return two[i%2][:]
	}, full)
	close(full)
	if err != nil {
		return "", total, err
	}
	hasher.Wait()
	return h.Digest(), total, nil
}

// pour reads into the buffers that next gives, hands each to full, and writes it.
func (p *part) pour(ctx context.Context, r io.Reader, next func(int) []byte, full chan<- []byte) (total int64, err error) {
	started := int64(0)
	for i := 0; ; i++ {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		b := next(i)
		n, err := io.ReadFull(r, b)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return total, err
		}
		if n > 0 {
			full <- b[:n]
			if _, err := p.file.Write(b[:n]); err != nil {
				return total, err
			}
		}
		total += int64(n)
		if end {
			return total, nil
		}
		if total-started >= ahead {
			// Only for speed: a file system that cannot is no fault.
			_ = unix.SyncFileRange(int(p.file.Fd()), started, total-started, unix.SYNC_FILE_RANGE_WRITE)
			started = total
		}
	}
}

// fillSmall is fill of what is less than a buffer.
func (p *part) fillSmall(ctx context.Context, r io.Reader) (digest.Digest, int64, error) {
	if err := ctx.Err(); err != nil {
		return "", 0, err
	}
	b := buffers.Get().(*buffer)
	defer buffers.Put(b)
	n, err := io.ReadFull(r, b[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", 0, err
	}
	if _, err := p.file.Write(b[:n]); err != nil {
		return "", 0, err
	}
	return digest.FromBytes(b[:n]), int64(n), nil
}
