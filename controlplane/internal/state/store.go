package state

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	bucketLines        = []byte("lines")        // node id
	bucketUnowned      = []byte("unowned")      // node id -> keys
	bucketLeavings     = []byte("leavings")     // node id, a bucket by key
	bucketModules      = []byte("modules")
	bucketDocuments    = []byte("module-documents") // module name -> bytes
	bucketPushed       = []byte("pushed")           // name "/" architecture
	bucketPublished    = []byte("published")        // architecture
	bucketEvents       = []byte("events")           // sequence
	bucketOrphans      = []byte("orphans")          // node id
	bucketRefused      = []byte("refused")          // sequence and node id
	bucketGrants       = []byte("grants")           // provider "/" node id

	buckets = [][]byte{
		bucketMesh, bucketAddresses, bucketTokens, bucketEnrolments, bucketHolders, bucketNodes, bucketNodeNames,
		bucketNodeKeys, bucketDeclarations, bucketLocal, bucketInventories, bucketReports, bucketSeen,
		bucketLines, bucketUnowned, bucketLeavings,
		bucketModules, bucketDocuments, bucketPushed, bucketPublished, bucketEvents, bucketOrphans,
		bucketRefused, bucketGrants,
	}
)

// A Store is the open file.
type Store struct {
	db *bbolt.DB
	// broken is set when bbolt could not finish a transaction of its own accord:
	// its locks may be held by nobody then.
	broken atomic.Bool

	turn, waiting sync.Mutex
	calls         []*call // of waiting
}

// Open opens the file at path and makes it when it is not there. The lock it
// takes ends with the process, however that ends. A file that is damaged is
// refused, and left as it is.
func Open(path string) (*Store, error) {
	var db *bbolt.DB
	err := guard(func() (err error) {
		// All of it is read below; the kernel brings it sooner than fault by fault.
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 100 * time.Millisecond, MmapFlags: unix.MAP_POPULATE})
		return err
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fault.Failedf("cannot open state %q: %s holds it", path, holder(path)).
			Hint("there is one control plane a machine; stop that one first")
	}
	if err != nil {
		return nil, unusable(path, err)
	}
	s := &Store{db: db}
	missing := false
	err = guard(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			if err := whole(tx, path); err != nil {
				return err
			}
			missing = slices.ContainsFunc(buckets, func(b []byte) bool { return tx.Bucket(b) == nil })
			return nil
		})
	})
	if err != nil {
		_ = guard(db.Close)
		return nil, unusable(path, err)
	}
	if !missing {
		return s, nil // one in order is not written
	}
	err = s.Update(func(tx *Tx) error {
		for _, b := range buckets {
			if _, err := tx.tx.CreateBucketIfNotExists(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.Close()
		return nil, unusable(path, err)
	}
	return s, nil
}

// Close waits for transactions under way and gives the lock back.
func (s *Store) Close() error {
	if s.broken.Load() {
		return nil // it would wait for ever; the lock ends with the process
	}
	return s.db.Close()
}

// View runs f on a consistent picture of the state.
func (s *Store) View(f func(*Tx) error) error { return s.transact(s.db.View, f) }

// Update runs f in a transaction of its own: all that f wrote is on disk when
// it returns nil, and nothing of it when f returns an error.
func (s *Store) Update(f func(*Tx) error) error { return s.transact(s.db.Update, f) }

// transact runs f in a transaction that how makes. A panic in it is the error of
// this one transaction, and nothing of it is written.
func (s *Store) transact(how func(func(*bbolt.Tx) error) error, f func(*Tx) error) error {
	var damage panicked
	if s.broken.Load() {
		return damaged(errors.New("an earlier transaction could not be ended"))
	}
	err := guard(func() error {
		return how(func(tx *bbolt.Tx) error {
			err := guard(func() error { return f(&Tx{tx}) })
			if errors.As(err, &damage) {
				return damaged(err)
			}
			return err
		})
	})
	if p, ok := err.(panicked); ok { // not f's: bbolt's own
		s.broken.Store(true)
		return damaged(p)
	}
	return err
}

func damaged(err error) error {
	return fault.Failedf("cannot use the state: it is damaged: %w", err).Hint(backup)
}

// Try runs f as Update does and takes everything back: it is for seeing what
// would be.
func (s *Store) Try(f func(*Tx) error) error {
	return s.transact(func(f func(*bbolt.Tx) error) error {
		tx, err := s.db.Begin(true)
		if err != nil {
			return err
		}
		return errors.Join(f(tx), tx.Rollback())
	}, f)
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
