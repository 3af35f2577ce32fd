// Package content is the content store: blobs by digest, as an OCI image
// layout on disk (oci-layout, index.json, blobs/sha256/HEX) that other tools
// read in place.
//
// Its story: a blob is written beside the others under a name of its own
// (staging/.HEX.PID.N.part), hashed on the way, made durable, and only then
// renamed to its digest. When all blobs of a tree are there, the tree is marked
// in index.json, last; only what is marked is complete. A Writer does this for
// many blobs at once: it makes them durable in groups of at most 64 MiB (or one
// larger blob), which is what a kill can cost besides the blob in hand.
//
// A blob goes when nobody needs it. Who needs what is said by its users: a mark
// keeps its tree until Unmark or until its keeper says that it is over, and each
// Keeper that Collect is given keeps what it names. The order is: the mark goes
// first, durably, then the blobs, so that nothing is ever marked complete that
// is not. What is marked and cannot be walked to its end keeps everything, and
// so does what cannot be read: only what was read and is wrong is damaged. A
// service leaves it to a Collector when that is done.
//
// Between storing a blob (or finding it there) and the mark or record that needs
// it, nothing but a Lease keeps it: a shared flock(2) on the directory of the
// blobs. Collect takes that lock alone, or ends at once with ErrInUse, and asks
// its keepers only then. So of two processes
//
//	reading:     lease → blobs → mark → release
//	collecting:  lock alone → ask keepers, read marks → remove → unlock
//
// one comes wholly before the other: a reader that finds a blob there still has
// it when it marks. The kernel ends a lock with its process, so a kill leaves
// none. A collection that was killed, or lost by a power cut, has removed some of
// what nobody needs; the next goes on.
//
// It promises that a blob under its digest had that digest when it was written,
// also after a kill or a power cut at any instant; that a blob which is there
// is not written again; and that any number of processes may write at once. It
// does not promise that a blob still has its digest years later (Read hashes
// again and throws away one that has not), nor anything to a program that does
// not know these locks and writes here: others may read.
//
// What a crash leaves in staging is swept by the next Open or Collect: a live
// writer holds a lock on its part, a dead one does not. Directories are 0700 and
// files 0600, since a blob may hold a configuration.
package content

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

const (
	layoutBytes = `{"imageLayoutVersion":"1.0.0"}`
	blobsDir    = "blobs/sha256"
	stagingDir  = "staging"
	lockFile    = ".lock"
	partSuffix  = ".part"
	// damagedSuffix is on the index.json that was set aside.
	damagedSuffix = ".damaged"
)

// A Store is a content store. Its methods may be called from any goroutine.
type Store struct{ dir string }

// Open opens the store in dir, makes what of it is not there, and sweeps what
// dead writers left. One that is whole opens on a read-only file system as well.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir}
	for _, d := range []string{"", blobsDir, stagingDir} {
		if err := durable.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("cannot make content store: %w", err)
		}
	}
	err := s.locked(s.begin)
	if errors.Is(err, unix.EROFS) {
		err = s.begin() // nobody else changes it there either, and to what is whole this does nothing
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open content store: %w", err)
	}
	// A part that cannot be swept takes room and nothing else: Collect says so.
	_, _, _ = s.sweep(false)
	return s, nil
}

// begin writes the two files of an empty layout where they are missing. One that
// was read and is wrong is set aside and begun anew: what counts is the blobs,
// which are known by their digest, and a mark that is lost costs one more reading.
func (s *Store) begin() error {
	name := filepath.Join(s.dir, v1.ImageLayoutFile)
	b, err := input.ReadFile(name, 4<<10)
	// What is no file of that size is wrong, as a file that says something else.
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, input.ErrNotRegular) && fault.KindOf(err) != fault.Refused {
		return err
	}
	if strings.TrimSpace(string(b)) != layoutBytes {
		var layout v1.ImageLayout
		if err := canonical.Foreign(b, &layout); err == nil && layout.Version != v1.ImageLayoutVersion {
			return fault.Refusedf("%q is an OCI image layout of version %q, not %s", s.dir, layout.Version, v1.ImageLayoutVersion)
		}
		if err := durable.WriteFile(name, []byte(layoutBytes), 0o600); err != nil {
			return err
		}
	}
	_, err = s.readIndex()
	var damage damagedError
	switch {
	case errors.As(err, &damage):
		index := filepath.Join(s.dir, v1.ImageIndexFile)
		if err := durable.Rename(index, index+damagedSuffix); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err // nil, or it could not be read, which says nothing about it
	}
	return s.writeIndex(&v1.Index{})
}

// Dir is the directory of the store.
func (s *Store) Dir() string { return s.dir }

func (s *Store) blob(d digest.Digest) string {
	return filepath.Join(s.dir, blobsDir, d.Encoded())
}

// Has reports whether the blob d is there, with size bytes; of any size when
// size is negative. It does not hash.
func (s *Store) Has(d digest.Digest, size int64) bool {
	if !canonical.Digest(d) {
		return false
	}
	fi, err := os.Lstat(s.blob(d))
	return err == nil && fi.Mode().IsRegular() && (size < 0 || fi.Size() == size)
}

// Open opens the blob d for reading. A blob that is not there is an error with
// fs.ErrNotExist in its chain.
func (s *Store) Open(d digest.Digest) (*os.File, error) {
	if !canonical.Digest(d) {
		return nil, fault.Refusedf("cannot open blob %q: it is no SHA-256 digest", d)
	}
	f, err := os.OpenFile(s.blob(d), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open blob: %w", err)
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot open blob %s: %w", d, err)
	}
	return f, nil
}

// Read returns the blob d, of at most max bytes, after hashing it again. One
// that is not what its name says is refused and thrown away, so that the next
// bundle that carries it brings it again.
func (s *Store) Read(d digest.Digest, max int64) ([]byte, error) {
	f, err := s.Open(d)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read blob: %w", err)
	}
	if int64(len(b)) > max {
		return nil, fault.Refusedf("cannot read blob %s: it has more than %d bytes", d, max)
	}
	if got := digest.FromBytes(b); got != d {
		if err := s.Drop(d); err != nil {
			return nil, err
		}
		return nil, fault.Refusedf("cannot read blob %s: digest mismatch, it holds %s", d, got)
	}
	return b, nil
}

// Drop throws the blob d away: for one that was found not to be what its name
// says. One that is not there is no error.
func (s *Store) Drop(d digest.Digest) error {
	if !canonical.Digest(d) {
		return fault.Refusedf("cannot remove blob %q: it is no SHA-256 digest", d)
	}
	if err := durable.Remove(s.blob(d)); err != nil {
		return fmt.Errorf("cannot remove blob: %w", err)
	}
	return nil
}

// Free is the space that is left in the store's file system for who is not
// root, in bytes.
func (s *Store) Free() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return 0, fmt.Errorf("cannot ask for free space: %w", &fs.PathError{Op: "statfs", Path: s.dir, Err: err})
	}
	return int64(st.Bavail) * st.Bsize, nil
}
