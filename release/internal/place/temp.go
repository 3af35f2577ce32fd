package place

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// tempPrefix begins the name of a Temp.
const tempPrefix = "mesh-release-"

// Temp makes a folder to work in, below TMPDIR, and gives what removes it. Those of
// runs that were killed go first: what is marked, this user's, and locked by nobody.
func Temp() (dir string, done func() error, err error) {
	path, err := filepath.Abs(os.TempDir())
	if err != nil {
		return "", nil, err
	}
	outer, err := os.MkdirTemp(path, tempPrefix)
	if err != nil {
		return "", nil, fault.Failedf("cannot make a folder to work in: %w", err).
			Hint("set TMPDIR to a directory that is there and may be written to")
	}
	top, err := durable.OpenDir(path)
	if err != nil {
		return "", nil, err
	}
	sweepTemps(top, filepath.Base(outer))
	d, err := openFolder(top, filepath.Base(outer))
	if err != nil {
		return "", nil, errors.Join(err, top.Close())
	}
	// The lock comes before the mark: what has a mark and no lock is dead.
	if err = unix.Flock(d.FD(), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = writeMark(d)
	}
	done = func() error {
		_, names, err := marked(d)
		if err == nil {
			err = empty(d, names)
		}
		if err == nil {
			err = unix.Unlinkat(top.FD(), filepath.Base(outer), unix.AT_REMOVEDIR)
		}
		return errors.Join(err, d.Close(), top.Close())
	}
	// A folder of its own: a place in it locks what it is in (Lock), which would wait
	// for ourselves.
	dir = filepath.Join(outer, "work")
	if err == nil {
		err = unix.Mkdirat(d.FD(), "work", 0o700)
	}
	if err != nil {
		return "", nil, errors.Join(err, done())
	}
	return dir, done, nil
}

// sweepTemps removes what killed runs left in top, but not the one that is ours. It is
// a favour: what it cannot remove stays.
func sweepTemps(top *durable.Dir, but string) {
	names, _ := namesIn(top)
	for _, name := range names {
		if !strings.HasPrefix(name, tempPrefix) || name == but {
			continue
		}
		if d, err := openFolder(top, name); err == nil {
			if sweepTemp(d) {
				_ = unix.Unlinkat(top.FD(), name, unix.AT_REMOVEDIR)
			}
			_ = d.Close()
		}
	}
}

// sweepTemp empties a dead one.
func sweepTemp(d *durable.Dir) bool {
	var st unix.Stat_t
	if unix.Fstat(d.FD(), &st) != nil || st.Uid != uint32(os.Geteuid()) || st.Mode&0o077 != 0 {
		return false
	}
	if unix.Flock(d.FD(), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	ours, names, err := marked(d)
	return err == nil && ours && empty(d, names) == nil
}
