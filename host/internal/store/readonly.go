package store

import (
	"errors"
	"io/fs"
	"syscall"

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
		s.db, s.barred = db, nil
		return nil
	}
	if !bars(err) {
		return err
	}
	db, err2 := open(s.path, forReading)
	if err2 == nil {
		s.db, s.barred = db, err
		return nil
	}
	if bars(err2) {
		return err
	}
	return err2 // it is locked, of a newer host, damaged
}

// Writable is why nothing can be recorded in the store, as far as the system
// says so beforehand, or nil.
func (s *Store) Writable() error {
	if err := s.reopen(); err != nil {
		return err
	}
	return writable(s.path)
}

// writable asks the system, which says EROFS to root as well (access(2)).
func writable(path string) error {
	if err := unix.Access(path, unix.W_OK); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// reopen opens a store for writing that could only be read until now.
func (s *Store) reopen() error {
	s.mu.RLock()
	barred := s.barred
	s.mu.RUnlock()
	if barred == nil {
		return nil
	}
	if err := writable(s.path); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.barred == nil {
		return nil // somebody else did
	}
	// The lock of a reader keeps a writer out: it is let go of, and taken again
	// when somebody else reads.
	_ = s.db.Close()
	if err := s.open(); err != nil {
		if db, err := open(s.path, forReading); err == nil {
			s.db = db
		}
		return err
	}
	return s.barred
}
