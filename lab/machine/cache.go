package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// CacheDir is the folder that holds prepared roots (a few hundred MB each),
// kept from run to run, and the disks of the labs that run: $NOX_LAB_CACHE, or
// nox-mesh-lab in the user's cache folder. It may be removed while no lab runs.
func CacheDir() (string, error) {
	if dir := os.Getenv("NOX_LAB_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "nox-mesh-lab"), err
}

const labPrefix = "nox-lab-"

// A home is a place for one lab.
type home struct {
	name string   // unique, and the name of its cgroups
	dir  string   // its disks
	root string   // the prepared root
	lock *os.File // held while somebody uses dir
}

// prepare sweeps what dead labs left, makes the root if there is none, and
// makes a place for a new lab; all of it one at a time.
func prepare() (home, error) {
	cache, err := CacheDir()
	if err != nil {
		return home{}, err
	}
	labs := filepath.Join(cache, "labs")
	if err := os.MkdirAll(labs, 0o700); err != nil {
		return home{}, err
	}
	door, err := lockCache(cache)
	if err != nil {
		return home{}, err
	}
	defer door.Close()
	if err := sweep(labs); err != nil {
		return home{}, err
	}
	root, err := preparedRoot(cache, basePackages)
	if err != nil {
		return home{}, err
	}
	dir, err := os.MkdirTemp(labs, labPrefix)
	if err != nil {
		return home{}, err
	}
	l, err := lock(filepath.Join(dir, "lock"), unix.LOCK_EX)
	return home{name: filepath.Base(dir), dir: dir, root: root, lock: l}, err
}

// lockCache lets one at a time change what is in the cache.
func lockCache(cache string) (*os.File, error) {
	return lock(filepath.Join(cache, "lock"), unix.LOCK_EX)
}

// sweep removes what was left by labs whose keeper was killed.
func sweep(labs string) error {
	entries, err := os.ReadDir(labs)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), labPrefix) {
			continue
		}
		dir := filepath.Join(labs, e.Name())
		l, err := lock(filepath.Join(dir, "lock"), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue // it lives
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went by itself meanwhile
		}
		if err != nil {
			return err
		}
		err = errors.Join(removeCgroups(e.Name(), ""), os.RemoveAll(dir))
		l.Close()
		if err != nil {
			return fmt.Errorf("cannot sweep a dead lab: %w", err)
		}
	}
	return nil
}

// lock opens and locks the file at path, flock(2); the lock lasts until every
// copy of the descriptor is closed.
func lock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}
