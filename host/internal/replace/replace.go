// Package replace notices that the host's own binary was replaced.
//
// The host restarts by ending, never by asking: after a pass is complete and
// recorded it looks, and when other content lies where it was started from, it
// exits zero and its supervisor starts the new one. It must not exit when the
// content is the same: reinstalling the same version replaces the inode, and a
// host that left for that would restart in a loop.
//
// /proc/self/exe reads as "… (deleted)" after a rename over it, an unlink or
// dpkg, but not when the file was renamed aside or a symlink was flipped; so
// the path's device and inode are compared, while the running image, held open
// by the kernel, keeps its own from being reused.
package replace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/opencontainers/go-digest"
)

// A Watch knows what runs and where it was started from. It is for one
// goroutine.
type Watch struct {
	path    string
	running string // a path that always opens the running image
	sum     [sha256.Size]byte
	// seen is the file that was last hashed and found to be the same.
	seen id
}

type id struct {
	dev, ino uint64
	size     int64
	mtime    int64
}

// Running returns the watch of this process. It is called at start, while the
// path still leads to what runs; the error says why there is nothing to watch.
func Running() (*Watch, error) {
	const self = "/proc/self/exe"
	path, err := os.Readlink(self)
	if err != nil {
		return nil, fmt.Errorf("cannot find the own binary: %w", err)
	}
	return watch(path, self)
}

func watch(path, running string) (*Watch, error) {
	sum, err := hash(running)
	if err != nil {
		return nil, fmt.Errorf("cannot read the own binary: %w", err)
	}
	return &Watch{path: path, running: running, sum: sum}, nil
}

// Path is where the running binary was started from.
func (w *Watch) Path() string { return w.path }

// Replaced says whether other content lies at the path now. A path at which
// nothing lies, for the moment between an unlink and a create or for good, is
// not replaced: there is nothing to start.
func (w *Watch) Replaced() (bool, error) {
	now, err := identify(w.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot look at the own binary: %w", err)
	}
	self, err := identify(w.running)
	if err != nil {
		return false, fmt.Errorf("cannot look at the own binary: %w", err)
	}
	if now == self || now == w.seen {
		return false, nil
	}
	sum, err := hash(w.path)
	if err != nil {
		return false, fmt.Errorf("cannot read the own binary: %w", err)
	}
	if sum != w.sum {
		return true, nil
	}
	w.seen = now
	return false, nil
}

// Programs returns the digests of the programs at the paths: the host that runs
// and the one that last proved itself may have to be put back. One that is not
// there has none.
func Programs(paths ...string) ([]digest.Digest, error) {
	var out []digest.Digest
	for _, path := range paths {
		sum, err := hash(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the own binary: %w", err)
		}
		out = append(out, digest.NewDigestFromBytes(digest.SHA256, sum[:]))
	}
	return out, nil
}

func identify(path string) (id, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return id{}, err
	}
	st := fi.Sys().(*syscall.Stat_t)
	return id{dev: st.Dev, ino: st.Ino, size: st.Size, mtime: fi.ModTime().UnixNano()}, nil
}

func hash(path string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
