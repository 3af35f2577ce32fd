package content

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A Lease keeps the store from being collected. It is flock(2), shared, on the
// directory of the blobs: it ends with the process that has it, leaves nothing
// behind, and needs no write.
type Lease struct{ fd int }

// Lease waits until no Collect is at work, and keeps any from beginning until
// Release. Whoever stores a blob, or finds one there, and tells only afterwards
// that it is needed (by a mark or a record of its own) holds one from before
// until then.
func (s *Store) Lease() (*Lease, error) {
	l, err := s.lock(unix.LOCK_SH)
	if err != nil {
		return nil, fmt.Errorf("cannot lock content store: %w", err)
	}
	return l, nil
}

// Release ends the lease; a second time does nothing.
func (l *Lease) Release() {
	if l.fd >= 0 {
		_ = unix.Close(l.fd)
		l.fd = -1
	}
}

// alone is the other side of a lease: it does not wait.
func (s *Store) alone() (*Lease, error) {
	l, err := s.lock(unix.LOCK_EX | unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, ErrInUse
	}
	return l, err
}

func (s *Store) lock(how int) (*Lease, error) {
	path := filepath.Join(s.dir, blobsDir)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	for {
		if err = unix.Flock(fd, how); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, &fs.PathError{Op: "flock", Path: path, Err: err}
	}
	return &Lease{fd: fd}, nil
}
