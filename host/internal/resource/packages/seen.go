package packages

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// settled is how old the last change of a file must be for its digest to be
// remembered: two changes within one tick of the kernel's clock look alike.
const settled = 2 * time.Second

// A seen remembers the digests of files by what changes when they do. It holds
// some hundred bytes for each file of the declared packages.
type seen struct {
	clock clock.Clock
	mu    sync.Mutex
	files map[string]sight
	// hashed counts the files that were read, for tests.
	hashed int
}

// A sight is a file as it was when it was read.
type sight struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
	// sum is an array and no string, to be small: n bytes of it.
	sum [sha256.Size]byte
	n   int
}

func newSeen(c clock.Clock) *seen { return &seen{clock: c, files: map[string]sight{}} }

func sightOf(st *unix.Stat_t) sight {
	return sight{dev: st.Dev, ino: st.Ino, size: st.Size, mtime: st.Mtim, ctime: st.Ctim}
}

// same reports whether it is the file as it was.
func (s sight) same(o sight) bool {
	return s.dev == o.dev && s.ino == o.ino && s.size == o.size && s.mtime == o.mtime && s.ctime == o.ctime
}

// sum is the digest of a file, in hex, by the function whose digests have so
// many characters. st is what the file is now.
func (s *seen) sum(ctx context.Context, name string, length int, st *unix.Stat_t) (string, error) {
	s.mu.Lock()
	was, ok := s.files[name]
	s.mu.Unlock()
	if ok && was.n*2 == length && was.same(sightOf(st)) {
		return hex.EncodeToString(was.sum[:was.n]), nil
	}
	var h hash.Hash
	switch length {
	case sha256.Size * 2:
		h = sha256.New()
	case md5.Size * 2:
		h = md5.New()
	default:
		return "", &fs.PathError{Op: "hash", Path: name, Err: errors.New("the package database has no digest of it that is known")}
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var now unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &now); err != nil {
		return "", &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if _, err := io.Copy(h, whileWanted{ctx, f}); err != nil {
		return "", err
	}
	see := sightOf(&now)
	see.n = copy(see.sum[:], h.Sum(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hashed++
	if changed := time.Unix(now.Ctim.Unix()); s.clock.Now().Sub(changed) > settled {
		s.files[name] = see
	} else {
		delete(s.files, name)
	}
	return hex.EncodeToString(see.sum[:see.n]), nil
}
