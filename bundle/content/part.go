package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Put stores the blob d of exactly size bytes from r. When it is there already
// nothing is read and nothing written. What r holds beyond size is left in it.
// After an error nothing of the blob is there.
func (s *Store) Put(ctx context.Context, d digest.Digest, size int64, r io.Reader) error {
	if !canonical.Digest(d) {
		return fault.Refusedf("cannot store blob %q: it is no SHA-256 digest", d)
	}
	if size < 0 {
		return fault.Refusedf("cannot store blob %s: its size is %d", d, size)
	}
	if s.Has(d, size) {
		return nil
	}
	p, err := s.newPart(d.Encoded())
	if err != nil {
		return err
	}
	defer p.abort()
	if err := p.reserve(size); err != nil {
		return fmt.Errorf("cannot store blob %s: %w", d, err)
	}
	got, n, err := p.fill(ctx, io.LimitReader(r, size))
	if err != nil {
		return fmt.Errorf("cannot store blob %s: %w", d, err)
	}
	if n != size {
		return fault.Refusedf("cannot store blob %s: truncated (got %d of %d bytes)", d, n, size)
	}
	if got != d {
		return fault.Refusedf("cannot store blob %s: digest mismatch, got %s", d, got)
	}
	return p.commit(d)
}

// Add stores the content of r to its end, at most max bytes, and returns its
// digest and size.
func (s *Store) Add(ctx context.Context, r io.Reader, max int64) (digest.Digest, int64, error) {
	p, err := s.newPart("new")
	if err != nil {
		return "", 0, err
	}
	defer p.abort()
	d, n, err := p.fill(ctx, io.LimitReader(r, max+1))
	if err != nil {
		return "", 0, fmt.Errorf("cannot store content: %w", err)
	}
	if n > max {
		return "", 0, fault.Refusedf("cannot store content: it has more than %d bytes", max)
	}
	if s.Has(d, n) {
		return d, n, nil
	}
	return d, n, p.commit(d)
}

// A part is a blob being written. It is locked for as long as it is open.
type part struct {
	store *Store
	file  *os.File
	path  string
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
		p := &part{store: s, file: f, path: path}
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

func (p *part) fill(ctx context.Context, r io.Reader) (digest.Digest, int64, error) {
	h := digest.SHA256.Digester()
	buf := make([]byte, 128<<10)
	var total int64
	for {
		if err := ctx.Err(); err != nil {
			return "", total, err
		}
		n, err := r.Read(buf)
		if n > 0 {
			h.Hash().Write(buf[:n])
			if _, err := p.file.Write(buf[:n]); err != nil {
				return "", total, err
			}
			total += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return h.Digest(), total, nil
		}
		if err != nil {
			return "", total, err
		}
	}
}

// commit makes the part the blob d. It stays locked until it has that name.
func (p *part) commit(d digest.Digest) error {
	err := p.file.Chmod(0o600)
	if err == nil {
		err = p.file.Sync()
	}
	if err == nil {
		err = durable.Rename(p.path, p.store.blob(d))
	}
	if err != nil {
		return fmt.Errorf("cannot store blob %s: %w", d, err)
	}
	err = p.file.Close()
	p.file = nil
	return err
}

func (p *part) abort() {
	if p.file == nil {
		return
	}
	// Nothing depends on this being durable: a sweep finds what comes back.
	_ = os.Remove(p.path)
	_ = p.file.Close()
	p.file = nil
}

// sweep removes the parts nobody holds.
func (s *Store) sweep() error {
	entries, err := os.ReadDir(filepath.Join(s.dir, stagingDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") || !strings.HasSuffix(e.Name(), partSuffix) {
			continue
		}
		path := filepath.Join(s.dir, stagingDir, e.Name())
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = os.Remove(path)
		}
		f.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
