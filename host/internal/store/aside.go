package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// damagedSuffix begins what a store that was set aside is called after.
const damagedSuffix = ".damaged-"

// setAside renames the store: nothing of it is lost, and who can repair it, or
// the disk below it, puts it back by its name. The host collects no content as
// long as it lies there.
func setAside(path string, cause error, c clock.Clock, log *slog.Logger) error {
	aside, err := asideName(path, c)
	if err != nil {
		return err
	}
	log.Error("the store is damaged and set aside; what this host applied before is no longer known to it",
		"store", path, "aside", aside, "cause", cause)
	if err := durable.Rename(path, aside); err != nil {
		return fmt.Errorf("cannot set the damaged store %q aside (%v): %w", path, cause, err)
	}
	return nil
}

// asideName is a name for the damaged store that is not taken.
func asideName(path string, c clock.Clock) (string, error) {
	name := path + damagedSuffix + c.Now().UTC().Format("20060102T150405Z")
	for n := 1; n < 1000; n++ {
		free := name
		if n > 1 {
			free = fmt.Sprintf("%s-%d", name, n)
		}
		if _, err := os.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return free, nil
		}
	}
	return "", fmt.Errorf("cannot set the damaged store %q aside: a thousand of them are there", path)
}

// SetAside returns the damaged stores that lie beside the one at path, for as
// long as nobody has looked at them and taken them away.
func SetAside(path string) []string {
	entries, _ := os.ReadDir(filepath.Dir(path)) // no pattern: a path may hold any character
	var found []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)+damagedSuffix) {
			found = append(found, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return found
}

// damagedError is what a damaged file did to bbolt, or what is wrong inside.
type damagedError struct{ error }

func (e damagedError) Unwrap() error { return e.error }

// damaged tells what was found inside the file from what the system said about
// it: no space, no descriptor left or a user who may not read it is no reason to
// begin a new store.
func damaged(err error) bool {
	var errno syscall.Errno
	return errors.As(err, new(damagedError)) || !errors.As(err, &errno)
}

// unreadable is err, which the store at path could not be opened for: as damage
// when the disk does not give its bytes (EIO; EUCLEAN and EBADMSG are a file
// system's own checksums), or when a security module keeps them from root. None
// of them passes by itself, and the machine is looked after meanwhile.
func unreadable(path string, err error) error {
	var errno syscall.Errno
	if errors.Is(err, ErrNewer) {
		return err
	}
	if !errors.As(err, &errno) {
		// bbolt says of what it cannot read that it is invalid, and of a page that
		// does not come the runtime says a fault: what does the system say?
		if cause := read(path); cause != nil {
			err = cause
		}
	}
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.EUCLEAN, syscall.EBADMSG} {
		if errors.Is(err, errno) {
			return damagedError{fmt.Errorf("it cannot be read: %w", err)}
		}
	}
	if errors.Is(err, syscall.EACCES) && os.Geteuid() == 0 {
		return damagedError{fmt.Errorf("it cannot be read: %w", err)}
	}
	return err
}

// read reads all of the file, for what the system says of it.
func read(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}
