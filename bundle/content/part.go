package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Put stores the blob d of exactly size bytes from r. When it is there already
// nothing is read and nothing written. What r holds beyond size is left in it.
// After an error nothing of the blob is there.
//
// Nothing keeps the blob from Collect but a Lease, or what Collect is told.
func (s *Store) Put(ctx context.Context, d digest.Digest, size int64, r io.Reader) error {
	p, err := s.receive(ctx, d, size, r)
	if err != nil || p == nil {
		return err
	}
	defer p.abort()
	return s.commit(p)
}

// receive writes the part that is to be the blob d; it is nil when the blob is
// there already.
func (s *Store) receive(ctx context.Context, d digest.Digest, size int64, r io.Reader) (p *part, err error) {
	if !canonical.Digest(d) {
		return nil, fault.Refusedf("cannot store blob %q: it is no SHA-256 digest", d)
	}
	if size < 0 {
		return nil, fault.Refusedf("cannot store blob %s: its size is %d", d, size)
	}
	if s.Has(d, size) {
		return nil, nil
	}
	if p, err = s.newPart(d.Encoded()); err != nil {
		return nil, err
	}
	if err := p.take(ctx, d, size, r); err != nil {
		p.abort()
		return nil, err
	}
	return p, nil
}

func (p *part) take(ctx context.Context, d digest.Digest, size int64, r io.Reader) error {
	if err := p.reserve(size); err != nil {
		return fmt.Errorf("cannot store blob %s: %w", d, err)
	}
	got, n, err := p.fill(ctx, io.LimitReader(r, size), size)
	if err != nil {
		return fmt.Errorf("cannot store blob %s: %w", d, err)
	}
	if n != size {
		return fault.Refusedf("cannot store blob %s: truncated (got %d of %d bytes)", d, n, size)
	}
	if got != d {
		return fault.Refusedf("cannot store blob %s: digest mismatch, got %s", d, got)
	}
	p.digest = d
	return nil
}

// Add stores the content of r to its end, at most max bytes, and returns its
// digest and size.
func (s *Store) Add(ctx context.Context, r io.Reader, max int64) (digest.Digest, int64, error) {
	p, err := s.newPart("new")
	if err != nil {
		return "", 0, err
	}
	defer p.abort()
	d, n, err := p.fill(ctx, io.LimitReader(r, max+1), max)
	if err != nil {
		return "", 0, fmt.Errorf("cannot store content: %w", err)
	}
	if n > max {
		return "", 0, fault.Refusedf("cannot store content: it has more than %d bytes", max)
	}
	if s.Has(d, n) {
		return d, n, nil
	}
	p.digest = d
	return d, n, s.commit(p)
}

// A part is a blob being written. It is locked for as long as it is open.
type part struct {
	file *os.File
	path string
	// digest is known when the part was written whole.
	digest digest.Digest
}

var parts atomic.Uint64

func (s *Store) newPart(what string) (*part, error) {
	for {
		name := fmt.Sprintf(".%s.%d.%d%s", what, os.Getpid(), parts.Add(1), partSuffix)
		path := filepath.Join(s.dir, stagingDir, name)
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue // left by a process of the same number
		}
		if err != nil {
			return nil, fmt.Errorf("cannot store content: %w", err)
		}
		p := &part{file: f, path: path}
		// A sweep may come between the open and the lock; then it is gone.
		var st unix.Stat_t
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
			p.abort()
			return nil, fmt.Errorf("cannot lock %q: %w", path, err)
		}
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			p.abort()
			return nil, fmt.Errorf("cannot look at %q: %w", path, err)
		}
		if st.Nlink == 0 {
			f.Close()
			continue
		}
		return p, nil
	}
}

// reserve takes the space before the first byte, where the file system can, so
// that a full disk is found out first.
func (p *part) reserve(size int64) error {
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(int(p.file.Fd()), 0, 0, size)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG) {
		return fmt.Errorf("no space (needs %d bytes): %w", size, err)
	}
	return nil
}

// abort ends a part: its file goes unless it became a blob.
func (p *part) abort() {
	if p.file == nil {
		return
	}
	if p.path != "" {
		// Nothing depends on this being durable: a sweep finds what comes back.
		_ = os.Remove(p.path)
	}
	_ = p.file.Close()
	p.file = nil
}
