package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"go.etcd.io/bbolt"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// keepReports is how many reports are kept.
const keepReports = 100

func be(v []byte) uint64 { return binary.BigEndian.Uint64(v) }

// AddReport keeps a report; with send it is also queued for the control plane,
// until MarkSent. The oldest beyond 100 go, and are not sent any more.
func (s *Store) AddReport(r link.Report, send bool) error {
	return s.update("a report", func(tx *bbolt.Tx) error {
		b, unsent := tx.Bucket(bucketReports), tx.Bucket(bucketUnsent)
		n, err := b.NextSequence()
		if err != nil {
			return err
		}
		if err := put(b, number(n), r); err != nil {
			return err
		}
		if send {
			if err := unsent.Put(number(n), []byte(r.ID)); err != nil {
				return err
			}
		}
		if n <= keepReports {
			return nil
		}
		last := number(n - keepReports)
		for _, old := range []*bbolt.Bucket{b, unsent} {
			c := old.Cursor()
			for k, _ := c.First(); k != nil && bytes.Compare(k, last) <= 0; k, _ = c.First() {
				if err := c.Delete(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Reports returns the reports, the newest first.
func (s *Store) Reports() ([]link.Report, error) {
	var out []link.Report
	err := s.view("the reports", func(tx *bbolt.Tx) (err error) {
		c := tx.Bucket(bucketReports).Cursor()
		for k, v := c.Last(); k != nil; k, v = c.Prev() {
			if s.bad.has(bucketReports, k) {
				continue
			}
			var r link.Report
			if err := json.Unmarshal(v, &r); err != nil {
				return err
			}
			out = append(out, r)
		}
		return nil
	})
	return out, err
}

// Unsent returns the reports the control plane has not seen, the oldest first.
func (s *Store) Unsent() ([]link.Report, error) {
	var out []link.Report
	err := s.view("the unsent reports", func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketUnsent).ForEach(func(k, _ []byte) error {
			if s.bad.has(bucketUnsent, k) {
				return nil
			}
			var r link.Report
			if err := json.Unmarshal(tx.Bucket(bucketReports).Get(k), &r); err != nil {
				return err
			}
			out = append(out, r)
			return nil
		})
	})
	return out, err
}

// Queued is how many reports the control plane has not seen.
func (s *Store) Queued() (n int, err error) {
	err = s.view("the unsent reports", func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketUnsent).Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			n++
		}
		return nil
	})
	return n, err
}

// MarkSent says that the control plane has the report.
func (s *Store) MarkSent(id string) error {
	return s.update("that a report was sent", func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketUnsent).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if string(v) == id {
				return c.Delete()
			}
		}
		return nil
	})
}
