package place

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// tempPattern is that of os.MkdirTemp.
const tempPattern = "mesh-release-*"

// Temp makes a folder to work in, below TMPDIR, and gives what removes it. Those of
// runs that were killed go first: what is marked, this user's, and locked by nobody.
func Temp() (dir string, done func() error, err error) {
	top, err := filepath.Abs(os.TempDir())
	if err != nil {
		return "", nil, err
	}
	sweepTemps(top)
	outer, err := os.MkdirTemp(top, tempPattern)
	if err != nil {
		return "", nil, fault.Failedf("cannot make a folder to work in: %w", err).
			Hint("set TMPDIR to a directory that is there and may be written to")
	}
	d, err := openFolder(outer)
	if err != nil {
		return "", nil, err
	}
	// The lock comes before the mark: what has a mark and no lock is dead.
	if err = unix.Flock(d.FD(), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = writeMark(outer)
	}
	done = func() error { return errors.Join(remove(outer), d.Close()) }
	// A folder of its own: a place in it locks what it is in (Lock), which would wait
	// for ourselves.
	dir = filepath.Join(outer, "work")
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return "", nil, errors.Join(err, done())
	}
	return dir, done, nil
}

// sweepTemps removes what killed runs left in top. It is a favour: what it cannot
// remove stays.
func sweepTemps(top string) {
	all, err := filepath.Glob(filepath.Join(escape(top), tempPattern))
	if err != nil {
		return
	}
	for _, path := range all {
		if d, err := openFolder(path); err == nil {
			sweepTemp(d)
			_ = d.Close()
		}
	}
}

func sweepTemp(d *durable.Dir) {
	var st unix.Stat_t
	if unix.Fstat(d.FD(), &st) != nil || st.Uid != uint32(os.Geteuid()) || st.Mode&0o077 != 0 {
		return
	}
	if unix.Flock(d.FD(), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	ours, names, err := marked(d.Name())
	if err != nil || !ours || empty(d, names) != nil {
		return
	}
	_ = unix.Rmdir(d.Name())
}

// escape makes a path a pattern that matches it alone.
func escape(path string) string {
	var out []byte
	for _, c := range []byte(path) {
		if c == '*' || c == '?' || c == '[' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return string(out)
}
