package store

import (
	"encoding/json"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// An Intent is written before a resource is touched. One that is still there
// at start says that the host was killed in between.
type Intent struct {
	Key  string           `json:"key"`
	ID   string           `json:"id"`
	Type declaration.Type `json:"type"`
	// Spec is the wish that was about to be applied.
	Spec json.RawMessage `json:"spec"`
	// Before is what the record shall say was there before the host.
	Before json.RawMessage `json:"before,omitempty"`
	// Restarts are the keys of what uses this resource and must be restarted
	// after it changed.
	Restarts []string  `json:"restarts,omitempty"`
	At       time.Time `json:"at"`
}

// Records returns what the host owns, in the order it was first applied.
func (s *Store) Records() ([]resource.Record, error) {
	var out []resource.Record
	err := s.view("what is owned", func(tx *bbolt.Tx) (err error) {
		out, err = all[resource.Record](tx, bucketRecords)
		return err
	})
	slices.SortStableFunc(out, func(a, b resource.Record) int {
		switch {
		case a.Sequence < b.Sequence:
			return -1
		case a.Sequence > b.Sequence:
			return 1
		}
		return 0
	})
	return out, err
}

// Intents returns the open intents.
func (s *Store) Intents() ([]Intent, error) {
	var out []Intent
	err := s.view("the open intents", func(tx *bbolt.Tx) (err error) {
		out, err = all[Intent](tx, bucketIntents)
		return err
	})
	return out, err
}

// Restarts returns the keys of what must still be restarted.
func (s *Store) Restarts() (map[string]bool, error) {
	out := map[string]bool{}
	err := s.view("the pending restarts", func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketRestarts).ForEach(func(k, _ []byte) error {
			out[string(k)] = true
			return nil
		})
	})
	return out, err
}

// Begin writes intents, in one transaction. The restarts they call for are
// marked now: if the host is killed right after the change, they are not
// forgotten.
func (s *Store) Begin(intents ...Intent) error {
	return s.update("an intent", func(tx *bbolt.Tx) error {
		for _, i := range intents {
			for _, k := range i.Restarts {
				if err := tx.Bucket(bucketRestarts).Put([]byte(k), nil); err != nil {
					return err
				}
			}
			if err := put(tx.Bucket(bucketIntents), []byte(i.Key), i); err != nil {
				return err
			}
		}
		return nil
	})
}

// Drop takes away, in one transaction, intents that changed nothing.
func (s *Store) Drop(keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	return s.update("the end of an intent", func(tx *bbolt.Tx) error {
		for _, key := range keys {
			if err := tx.Bucket(bucketIntents).Delete([]byte(key)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Commit records, in one transaction, that the host owns what the records say:
// after it worked, never before. The intents and pending restarts of the
// resources end with it. A new record gets the next sequence number, an old one
// keeps its own.
func (s *Store) Commit(records ...resource.Record) error {
	return s.update("what was applied", func(tx *bbolt.Tx) error {
		for _, r := range records {
			if err := commit(tx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// Restamp writes again, in one transaction, records of resources that did not
// change but are declared by another declaration now.
func (s *Store) Restamp(records []resource.Record) error {
	if len(records) == 0 {
		return nil
	}
	return s.update("who declares what", func(tx *bbolt.Tx) error {
		for _, r := range records {
			if err := put(tx.Bucket(bucketRecords), []byte(r.Key), r); err != nil {
				return err
			}
		}
		return nil
	})
}

func commit(tx *bbolt.Tx, r resource.Record) error {
	key, records := []byte(r.Key), tx.Bucket(bucketRecords)
	if r.Sequence == 0 {
		meta := tx.Bucket(bucketMeta)
		if v := meta.Get(keySequence); len(v) == 8 {
			r.Sequence = be(v)
		}
		r.Sequence++
		if err := meta.Put(keySequence, number(r.Sequence)); err != nil {
			return err
		}
	}
	if err := put(records, key, r); err != nil {
		return err
	}
	if err := tx.Bucket(bucketIntents).Delete(key); err != nil {
		return err
	}
	return tx.Bucket(bucketRestarts).Delete(key)
}

// Forget ends ownership, in one transaction: the things were removed or
// released.
func (s *Store) Forget(keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	return s.update("what was removed", func(tx *bbolt.Tx) error {
		for _, key := range keys {
			for _, b := range [][]byte{bucketRecords, bucketIntents, bucketRestarts} {
				if err := tx.Bucket(b).Delete([]byte(key)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
