package store

import (
	"bytes"
	"errors"
	"io/fs"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// A store on a file system that is read-only (by the administrator, or by the
// kernel after an error: errors=remount-ro of ext4(5)) is opened for reading, so
// that the host still says what it owns and what is wrong. It makes nothing
// there, not even a lock: readers share that of the file itself. Each change
// fails with the cause, and looks first whether it can be made by now.

// bars reports whether err keeps the store from being written, and may not keep
// it from being read.
func bars(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)
}

// open opens the store for writing; for reading, when that alone is possible.
func (s *Store) open() error {
	db, err := open(s.path, forWriting)
	if err == nil {
		return s.take(db, nil)
	}
	if !bars(err) {
		return err
	}
	db, err2 := open(s.path, forReading)
	if err2 == nil {
		return s.take(db, err)
	}
	if bars(err2) {
		return err
	}
	return err2 // it is locked, of a newer host, damaged
}

// take makes db the open one; barred is why it is for reading only.
func (s *Store) take(db *bbolt.DB, barred error) error {
	if err := s.look(db); err != nil {
		db.Close()
		return err
	}
	s.db, s.barred = db, barred
	return nil
}

// Writable is why nothing can be recorded in the store, as far as the system
// says so beforehand, or nil.
func (s *Store) Writable() error { return may(s.path, forWriting) }

// Ready returns an error unless a change can be made durable now: it makes one that
// changes nothing. What access(2) says is not enough: an ext4 that had an error lets
// nothing be written, and does not say so there.
func (s *Store) Ready() error {
	return s.update("anything", func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		return meta.Put(keyFormat, bytes.Clone(meta.Get(keyFormat)))
	})
}

// may asks the system, which says EROFS to root as well (access(2)).
func may(path string, readOnly bool) error {
	op, mode := "write", uint32(unix.W_OK)
	if readOnly {
		op, mode = "read", unix.R_OK
	}
	if err := unix.Access(path, mode); err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

// during calls f while the store is open for what f does.
func (s *Store) during(readOnly bool, f func() error) error {
	for {
		s.mu.RLock()
		if s.fit(readOnly) {
			defer s.mu.RUnlock()
			return f()
		}
		s.mu.RUnlock()
		// Held alone for no longer than it takes; in between somebody else may
		// have come.
		if err := s.reopen(readOnly); err != nil {
			return err
		}
	}
}

// fit reports whether nothing needs to be opened. One that was closed for good
// says so itself.
func (s *Store) fit(readOnly bool) bool {
	return s.db != nil && (readOnly || s.barred == nil || s.closed)
}

// reopen opens a store for writing that could only be read until now, and one
// that could not be opened by the reopen before.
func (s *Store) reopen(readOnly bool) error {
	// Also because a store that is gone would be begun.
	if err := may(s.path, readOnly); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fit(readOnly) {
		return nil // somebody else did
	}
	if s.closed {
		return berrors.ErrDatabaseNotOpen
	}
	if s.db != nil {
		// The lock of a reader keeps a writer out: it is let go of, and taken again
		// when somebody else reads.
		_ = s.db.Close()
		s.db = nil
	}
	err := s.open()
	if err != nil {
		if db, err2 := open(s.path, forReading); err2 == nil {
			err = s.take(db, err)
		}
	}
	switch {
	case err != nil:
		return err
	case !readOnly:
		return s.barred
	}
	return nil
}
