package store

import (
	"strings"

	"go.etcd.io/bbolt"
)

// Release is what a bundle moves of the machine's trust.
type Release struct {
	// Name is the bundle's, Counter the one that only grows.
	Name    string
	Counter uint64
	// Root is the release root in force after it, as it was signed; nil leaves
	// the one there is.
	Root []byte
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

func take(tx *bbolt.Tx, r Release) error {
	b, key := tx.Bucket(bucketTrust), []byte(prefixCounter+r.Name)
	if v := b.Get(key); len(v) != 8 || be(v) < r.Counter {
		if err := b.Put(key, number(r.Counter)); err != nil {
			return err
		}
	}
	if r.Root == nil {
		return nil
	}
	return b.Put(keyRoot, r.Root)
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
