// Package store is the host's record of what it applied: one bbolt file.
//
// What it promises: every method that returns nil has made its change durable,
// whole, in one transaction; after a kill or a power cut the store holds the
// state before the change or after it. A store that cannot be read is set
// aside under another name and a new one begun; the host then owns nothing it
// does not find again, and guesses nothing. One that cannot be written is read,
// damaged in part or not, and says so at each change.
//
// What is in it:
//
//	wanted    the declaration in force: where it came from, its order, its bytes
//	records   what the host owns, by key ("file:/etc/motd")
//	intents   what it was about to touch when it was last killed
//	restarts  what must still be restarted because something it uses changed
//	reports   the last 100, and which of them the control plane has not seen
//
// The order around a change is: Begin (intent), act, look, Commit (record in,
// intent out). Blobs are not here but in the content store; identity and trust
// are files of their own.
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
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

const (
	// mapped is how much of the file is mapped from the start, in bytes: of addresses,
	// and of nothing else. A file that outgrows what is mapped is mapped anew, which an
	// ext4 that had an error refuses (EROFS), and bbolt then reads nothing any more.
	mapped = 64 << 20
	// growth is by how much the file grows; as large as what is mapped otherwise.
	growth = 64 << 10
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

	buckets = [][]byte{bucketMeta, bucketWanted, bucketRecords, bucketIntents, bucketRestarts, bucketReports, bucketUnsent}

	keyFormat   = []byte("format")
	keySequence = []byte("sequence")
)

// ErrLocked is returned by Open when another process holds the store.
var ErrLocked = errors.New("another mesh-host holds the store")

// ErrNewer is returned by Open for a store of a later version of the host.
var ErrNewer = errors.New("the store was written by a newer mesh-host")

// Store is the open store. It is safe for use by several goroutines.
type Store struct {
	path string
	log  *slog.Logger
	// mu is held alone while db is opened anew.
	mu sync.RWMutex
	// db is nil when it could not be opened anew.
	db *bbolt.DB
	// barred is why db is open for reading only.
	barred error
	// bad is what is damaged in db, and left out by readers.
	bad    entries
	closed bool
}

// Open opens the store at path, or begins one. Its directory must be there. One
// that can be read and not written is opened for reading (readonly.go).
func Open(path string, c clock.Clock, log *slog.Logger) (*Store, error) {
	s := &Store{path: path, log: log}
	err := s.open()
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, ErrLocked), errors.Is(err, ErrNewer):
		return nil, err
	case !damaged(err):
		return nil, fmt.Errorf("cannot open store %q: %w", path, err)
	}
	if err := setAside(path, err, c, log); err != nil {
		return nil, err
	}
	if s.db, err = open(path, forWriting); err != nil {
		return nil, fmt.Errorf("cannot begin store %q: %w", path, err)
	}
	return s, nil
}

// What a store is opened for.
const (
	forWriting = false
	forReading = true
)

func open(path string, readOnly bool) (*bbolt.DB, error) {
	fi, err := os.Stat(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err == nil && fi.Size() == 0 {
		// bbolt would begin it anew without a word.
		return nil, damagedError{errors.New("it is empty")}
	}
	db, err := guard(func() (*bbolt.DB, error) {
		return bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 50 * time.Millisecond, ReadOnly: readOnly, InitialMmapSize: mapped})
	})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, ErrLocked
	}
	if err != nil {
		if !fresh {
			err = unreadable(path, err)
		}
		return nil, err
	}
	db.AllocSize = growth
	if fresh {
		if err := durable.SyncDir(filepath.Dir(path)); err != nil {
			db.Close()
			return nil, err
		}
	}
	_, err = guard(func() (struct{}, error) { return struct{}{}, prepare(db) })
	if err != nil {
		db.Close()
		if !fresh {
			err = unreadable(path, err)
		}
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
			if err := b.ForEach(func(k, v []byte) error { return checkEntry(name, k, v) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !missing {
		return err
	}
	if db.IsReadOnly() {
		return fmt.Errorf("it was never begun: %w", syscall.EROFS)
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

// checkEntry looks at one entry of what must be whole for the host to know what
// it owns: a record that says less, or is about something else than its key
// does, is no record.
func checkEntry(bucket, k, v []byte) error {
	var about struct {
		Key  string          `json:"key"`
		ID   string          `json:"id"`
		Spec json.RawMessage `json:"spec"`
	}
	switch string(bucket) {
	case string(bucketRecords), string(bucketIntents):
	default:
		return nil
	}
	if err := json.Unmarshal(v, &about); err != nil {
		return damagedError{fmt.Errorf("%q in bucket %q is not JSON", k, bucket)}
	}
	r, err := declaration.FromSpec(about.ID, about.Spec)
	if err != nil || about.Key != string(k) || r.Key() != string(k) {
		return damagedError{fmt.Errorf("%q in bucket %q is about something else", k, bucket)}
	}
	return nil
}

// Close closes the store and releases its lock.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}

// Writes is how many pages this process wrote to the store since it was
// opened: a pass that found everything as declared leaves it as it was.
func (s *Store) Writes() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return 0
	}
	st := s.db.Stats()
	return st.TxStats.GetWrite()
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func (s *Store) update(what string, f func(tx *bbolt.Tx) error) error {
	err := s.during(forWriting, func() error {
		if len(s.bad) == 0 {
			return s.db.Update(f)
		}
		return s.db.Update(func(tx *bbolt.Tx) error {
			if err := takeOut(tx); err != nil {
				return err
			}
			return f(tx)
		})
	})
	if err != nil {
		return fmt.Errorf("cannot record %s in the store: %w", what, err)
	}
	s.mended()
	return nil
}

func (s *Store) view(what string, f func(tx *bbolt.Tx) error) error {
	if err := s.during(forReading, func() error { return s.db.View(f) }); err != nil {
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
