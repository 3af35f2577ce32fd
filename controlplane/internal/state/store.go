package state

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// The buckets. The key is the record's id unless said otherwise.
var (
	bucketMesh         = []byte("mesh") // one key: "mesh"
	bucketAddresses    = []byte("addresses")
	bucketTokens       = []byte("tokens")
	bucketEnrolments   = []byte("enrolments")
	bucketHolders      = []byte("token-enrolments") // token id "/" enrolment id
	bucketNodes        = []byte("nodes")
	bucketNodeNames    = []byte("node-names")   // name -> node id
	bucketNodeKeys     = []byte("node-keys")    // key -> node id
	bucketDeclarations = []byte("declarations") // node id -> bytes
	bucketLocal        = []byte("local")        // node id -> declaration it enrolled with
	bucketInventories  = []byte("inventories")  // node id
	bucketReports      = []byte("reports")      // node id, a bucket by sequence
	bucketSeen         = []byte("seen")         // node id -> RFC 3339
	bucketModules      = []byte("modules")
	bucketDocuments    = []byte("module-documents") // module name -> bytes
	bucketEvents       = []byte("events")           // sequence

	buckets = [][]byte{
		bucketMesh, bucketAddresses, bucketTokens, bucketEnrolments, bucketHolders, bucketNodes, bucketNodeNames,
		bucketNodeKeys, bucketDeclarations, bucketLocal, bucketInventories, bucketReports, bucketSeen,
		bucketModules, bucketDocuments, bucketEvents,
	}
)

// A Store is the open file.
type Store struct{ db *bbolt.DB }

// Open opens the file at path and makes it when it is not there. The lock it
// takes ends with the process, however that ends.
func Open(path string) (*Store, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 100 * time.Millisecond})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fault.Failedf("cannot open state %q: %s holds it", path, holder(path)).
			Hint("there is one control plane a machine; stop that one first")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open state %q: %w", path, err)
	}
	db.MaxBatchDelay = 2 * time.Millisecond
	s := &Store{db: db}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, b := range buckets {
			if _, err := tx.CreateBucketIfNotExists(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot open state %q: %w", path, err)
	}
	return s, nil
}

// Close waits for transactions under way and gives the lock back.
func (s *Store) Close() error { return s.db.Close() }

// View runs f on a consistent picture of the state.
func (s *Store) View(f func(*Tx) error) error {
	return s.db.View(func(tx *bbolt.Tx) error { return f(&Tx{tx}) })
}

// Update runs f in a transaction of its own: all that f wrote is on disk when
// it returns nil, and nothing of it when f returns an error.
func (s *Store) Update(f func(*Tx) error) error {
	return s.db.Update(func(tx *bbolt.Tx) error { return f(&Tx{tx}) })
}

// Batch is Update for work that comes from many at once: transactions that
// wait at the same time share one write to the disk. f may be run more than
// once and must not count on it; only what its last run did holds.
func (s *Store) Batch(f func(*Tx) error) error {
	return s.db.Batch(func(tx *bbolt.Tx) error { return f(&Tx{tx}) })
}

// Try runs f as Update does and takes everything back: it is for seeing what
// would be.
func (s *Store) Try(f func(*Tx) error) error {
	tx, err := s.db.Begin(true)
	if err != nil {
		return err
	}
	return errors.Join(f(&Tx{tx}), tx.Rollback())
}

// holder names the process that has the file locked, from proc_locks(5).
func holder(path string) string {
	const unknown = "another process"
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return unknown
	}
	want := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return unknown
	}
	defer locks.Close()
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 708 00:13:27 0 EOF
		f := strings.Fields(lines.Text())
		if len(f) >= 6 && f[1] == "FLOCK" && f[5] == want {
			return "process " + f[4]
		}
	}
	return unknown
}
