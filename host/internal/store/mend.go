package store

import (
	"encoding/json"

	"github.com/opencontainers/go-digest"
	"go.etcd.io/bbolt"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// What is damaged and can be had again is no reason to set a store aside: the
// declaration in force (the mesh sends it again, a person applies it again; until
// then nothing is changed) and reports. Readers leave it out, also where nothing
// can be written; the first change takes it away.

// An entry is one of a bucket.
type entry struct{ bucket, key string }

// entries are those of s.bad.
type entries map[entry]bool

func (e entries) has(bucket, key []byte) bool { return e[entry{string(bucket), string(key)}] }

// spoiled returns the entries that are damaged and can be had again.
func spoiled(tx *bbolt.Tx) (entries, error) {
	bad := entries{}
	if b := tx.Bucket(bucketWanted); b.Get(keyWanted) != nil {
		var w Wanted
		if json.Unmarshal(b.Get(keyWanted), &w) != nil || digest.FromBytes(b.Get(keyDocument)).String() != w.Digest {
			bad[entry{string(bucketWanted), string(keyWanted)}] = true
			bad[entry{string(bucketWanted), string(keyDocument)}] = true
		}
	}
	reports := tx.Bucket(bucketReports)
	err := reports.ForEach(func(k, v []byte) error {
		if len(k) != 8 || json.Unmarshal(v, &link.Report{}) != nil {
			bad[entry{string(bucketReports), string(k)}] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return bad, tx.Bucket(bucketUnsent).ForEach(func(k, _ []byte) error {
		if reports.Get(k) == nil || bad.has(bucketReports, k) {
			bad[entry{string(bucketUnsent), string(k)}] = true
		}
		return nil
	})
}

// look finds what is damaged in db, which is to be the open one, and says so.
func (s *Store) look(db *bbolt.DB) (err error) {
	err = db.View(func(tx *bbolt.Tx) error {
		s.bad, err = spoiled(tx)
		return err
	})
	if len(s.bad) > 0 {
		s.log.Error("the store is damaged in part: what can be had again is left out", "entries", len(s.bad), "declaration", s.bad.has(bucketWanted, keyWanted))
	}
	return err
}

// takeOut takes away what is damaged at this moment: another change may have
// written it anew since it was found.
func takeOut(tx *bbolt.Tx) error {
	bad, err := spoiled(tx)
	if err != nil {
		return err
	}
	for e := range bad {
		if err := tx.Bucket([]byte(e.bucket)).Delete([]byte(e.key)); err != nil {
			return err
		}
	}
	return nil
}

// mended is after a change, which took out what was damaged.
func (s *Store) mended() {
	s.mu.RLock()
	whole := len(s.bad) == 0
	s.mu.RUnlock()
	if whole {
		return
	}
	s.mu.Lock()
	s.bad = nil
	s.mu.Unlock()
}
