// Package store is the host's record of what it applied: one bbolt file.
//
// What it promises: every method that returns nil has made its change durable,
// whole, in one transaction; after a kill or a power cut the store holds the
// state before the change or after it. A store that cannot be read is set
// aside under another name and a new one begun; the host then owns nothing it
// does not find again, and guesses nothing.
//
// What is in it:
//
//	wanted    the declaration in force: where it came from, its order, its bytes
//	records   what the host owns, by key ("file:/etc/motd")
//	intents   what it was about to touch when it was last killed
//	restarts  what must still be restarted because something it uses changed
//	reports   the last 100, and which of them the control plane has not seen
//	trust     the highest counter of each bundle, the release root in force
//
// The order around a change is: Begin (intent), act, look, Commit (record in,
// intent out). Blobs are not here but in the content store; the identity is a
// file of its own.
package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// format is the version of the layout below.
const format = 1

var (
	bucketMeta     = []byte("meta")
	bucketWanted   = []byte("wanted")
	bucketRecords  = []byte("records")
	bucketIntents  = []byte("intents")
	bucketRestarts = []byte("restarts")
	bucketReports  = []byte("reports")
	bucketUnsent   = []byte("unsent")
	bucketTrust    = []byte("trust")

	buckets = [][]byte{bucketMeta, bucketWanted, bucketRecords, bucketIntents, bucketRestarts, bucketReports, bucketUnsent, bucketTrust}

	keyFormat   = []byte("format")
	keySequence = []byte("sequence")
)

// ErrLocked is returned by Open when another process holds the store.
var ErrLocked = errors.New("another mesh-host holds the store")

// ErrNewer is returned by Open for a store of a later version of the host.
var ErrNewer = errors.New("the store was written by a newer mesh-host")

// Store is the open store. It is safe for use by several goroutines.
type Store struct {
	db *bbolt.DB
	// Damaged is where a store that could not be read was set aside, or "".
	Damaged string
}

// Open opens the store at path, or begins one. Its directory must be there.
func Open(path string, c clock.Clock, log *slog.Logger) (*Store, error) {
	db, err := open(path)
	switch {
	case errors.Is(err, ErrLocked), errors.Is(err, ErrNewer):
		return nil, err
	case err == nil:
		return &Store{db: db}, nil
	case !damaged(err):
		return nil, fmt.Errorf("cannot open store %q: %w", path, err)
	}
	aside := path + ".damaged-" + c.Now().UTC().Format("20060102T150405Z")
	log.Error("the store is damaged and set aside; what this host applied before is no longer known to it",
		"store", path, "aside", aside, "cause", err)
	if err := durable.Rename(path, aside); err != nil {
		return nil, fmt.Errorf("cannot set the damaged store %q aside: %w", path, err)
	}
	if db, err = open(path); err != nil {
		return nil, fmt.Errorf("cannot begin store %q: %w", path, err)
	}
	return &Store{db: db, Damaged: aside}, nil
}

// damagedError is what a damaged file did to bbolt, or what is wrong inside.
type damagedError struct{ error }

// damaged tells what was found inside the file from what the system said about
// it: no space or no permission is no reason to begin a new store.
func damaged(err error) bool {
	var errno syscall.Errno
	return !errors.As(err, &errno)
}

func open(path string) (*bbolt.DB, error) {
	fi, err := os.Stat(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err == nil && fi.Size() == 0 {
		// A power cut can leave a new file present and empty: it never held
		// anything, and bbolt begins it anew.
		fresh = true
	}
	db, err := guard(func() (*bbolt.DB, error) {
		return bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 50 * time.Millisecond})
	})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := durable.SyncDir(filepath.Dir(path)); err != nil {
			db.Close()
			return nil, err
		}
	}
	_, err = guard(func() (struct{}, error) { return struct{}{}, prepare(db) })
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// guard turns what a damaged file does to bbolt (a panic, or a fault in the
// mapping) into an error.
func guard[T any](f func() (T, error)) (out T, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damagedError{fmt.Errorf("%v", r)}
		}
	}()
	return f()
}

// prepare makes the buckets of a new store and reads all of an old one, so
// that damage is found now and not in the middle of an apply. A store in order
// is not written.
func prepare(db *bbolt.DB) error {
	missing := false
	err := db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket(bucketMeta); b != nil {
			v, known := b.Get(keyFormat), false
			if len(v) == 8 {
				n := binary.BigEndian.Uint64(v)
				if n > format {
					return fmt.Errorf("%w (format %d, this version reads %d)", ErrNewer, n, format)
				}
				known = n > 0
			}
			if !known {
				return damagedError{errors.New("it does not say its format")}
			}
		}
		for _, name := range buckets {
			b := tx.Bucket(name)
			if b == nil {
				missing = true
				continue
			}
			if err := b.ForEach(func(_, v []byte) error {
				if string(name) == string(bucketRecords) || string(name) == string(bucketIntents) {
					if !json.Valid(v) {
						return damagedError{fmt.Errorf("bucket %q holds what is not JSON", name)}
					}
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !missing {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketMeta).Put(keyFormat, number(format))
	})
}

// Close closes the store and releases its lock.
func (s *Store) Close() error { return s.db.Close() }

// Writes is how many pages this process wrote to the store since it was
// opened: a pass that found everything as declared leaves it as it was.
func (s *Store) Writes() int64 {
	st := s.db.Stats()
	return st.TxStats.GetWrite()
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func (s *Store) update(what string, f func(tx *bbolt.Tx) error) error {
	if err := s.db.Update(f); err != nil {
		return fmt.Errorf("cannot record %s in the store: %w", what, err)
	}
	return nil
}

func (s *Store) view(what string, f func(tx *bbolt.Tx) error) error {
	if err := s.db.View(f); err != nil {
		return fmt.Errorf("cannot read %s from the store: %w", what, err)
	}
	return nil
}

func put(b *bbolt.Bucket, key []byte, v any) error {
	j, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put(key, j)
}

// all reads every value of a bucket, in the order of its keys.
func all[T any](tx *bbolt.Tx, bucket []byte) ([]T, error) {
	var out []T
	err := tx.Bucket(bucket).ForEach(func(k, v []byte) error {
		var t T
		if err := json.Unmarshal(v, &t); err != nil {
			return fmt.Errorf("%q: %w", k, err)
		}
		out = append(out, t)
		return nil
	})
	return out, err
}
