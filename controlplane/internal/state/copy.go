package state

import (
	"io"

	"go.etcd.io/bbolt"
)

// Copy writes the file, as it is at one moment, to w, and runs f on that same
// picture before. w should be quick: pages that are freed meanwhile cannot be used
// again, so the file grows by what is written, and a transaction that has to make
// the file larger waits until the copy is done.
func (s *Store) Copy(w io.Writer, f func(*Tx) error) error {
	return s.transact(func(in func(*bbolt.Tx) error) error {
		return s.db.View(func(tx *bbolt.Tx) error {
			if err := in(tx); err != nil {
				return err
			}
			_, err := tx.WriteTo(w)
			return err
		})
	}, f)
}
