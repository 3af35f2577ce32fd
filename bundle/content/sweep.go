package content

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// sweep finds the parts nobody holds, removes them unless dry, and returns how
// many there are with how many bytes.
func (s *Store) sweep(dry bool) (parts int, bytes int64, err error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, stagingDir))
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), ".") || !strings.HasSuffix(e.Name(), partSuffix) {
			continue // not ours
		}
		n, dead, err := sweepPart(filepath.Join(s.dir, stagingDir, e.Name()), dry)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was committed, or another swept it
		}
		if err != nil {
			return parts, bytes, err
		}
		if dead {
			parts, bytes = parts+1, bytes+n
		}
	}
	return parts, bytes, nil
}

func sweepPart(path string, dry bool) (size int64, dead bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return 0, false, nil
	}
	if !dry {
		err = os.Remove(path)
	}
	return fi.Size(), err == nil, err
}
