package store

import (
	"strings"

	"go.etcd.io/bbolt"
)

// Counter is the counter of a bundle's name. It only grows.
type Counter struct {
	Name    string
	Counter uint64
}

var (
	prefixCounter = "counter:"
	keyRoot       = []byte("root")
)

// CounterOf returns the highest counter accepted for a bundle's name, 0 for
// none.
func (s *Store) CounterOf(name string) (n uint64, err error) {
	err = s.view("the counter of a bundle", func(tx *bbolt.Tx) error {
		if v := tx.Bucket(bucketTrust).Get([]byte(prefixCounter + name)); len(v) == 8 {
			n = be(v)
		}
		return nil
	})
	return n, err
}

func raise(tx *bbolt.Tx, c Counter) error {
	b, key := tx.Bucket(bucketTrust), []byte(prefixCounter+c.Name)
	if v := b.Get(key); len(v) == 8 && be(v) >= c.Counter {
		return nil
	}
	return b.Put(key, number(c.Counter))
}

// Root returns the release root in force, as it was signed, or nil when the
// store has never seen one.
func (s *Store) Root() (root []byte, err error) {
	err = s.view("the release root", func(tx *bbolt.Tx) error {
		root = append(root, tx.Bucket(bucketTrust).Get(keyRoot)...)
		return nil
	})
	return root, err
}

// SetRoot makes root the release root in force.
func (s *Store) SetRoot(root []byte) error {
	return s.update("the release root", func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketTrust).Put(keyRoot, root)
	})
}

// Counters returns the highest counters accepted, by bundle name.
func (s *Store) Counters() (map[string]uint64, error) {
	out := map[string]uint64{}
	err := s.view("the counters of bundles", func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketTrust).ForEach(func(k, v []byte) error {
			if name, ok := strings.CutPrefix(string(k), prefixCounter); ok && len(v) == 8 {
				out[name] = be(v)
			}
			return nil
		})
	})
	return out, err
}
