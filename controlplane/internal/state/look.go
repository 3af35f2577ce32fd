package state

import (
	"time"

	"go.etcd.io/bbolt"
)

// Look runs f on the state at path that nobody has open, and changes nothing of it:
// it may be one of an older version, in which what came later is not.
func Look(path string, f func(*Tx) error) error {
	return guard(func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 100 * time.Millisecond})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bbolt.Tx) error {
			if err := whole(tx, path); err != nil {
				return err
			}
			return f(&Tx{tx})
		})
	})
}
