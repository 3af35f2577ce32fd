package dpkg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
)

// locks are what apt and dpkg lock before they change anything, with fcntl(2),
// which ends with the process: there is no stale one.
var locks = []string{admin + "/lock-frontend", admin + "/lock", "/var/cache/apt/archives/lock"}

// Lock says who holds the database.
func (m *Manager) Lock() (database.Lock, error) {
	for _, name := range locks {
		f, err := os.Open(m.layout.Path(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return database.Lock{}, fmt.Errorf("cannot look at the lock of dpkg: %w", err)
		}
		l := unix.Flock_t{Type: unix.F_WRLCK}
		err = unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l)
		f.Close()
		if err != nil {
			return database.Lock{}, fmt.Errorf("cannot look at the lock of dpkg: %w", &fs.PathError{Op: "fcntl", Path: name, Err: err})
		}
		if l.Type != unix.F_UNLCK {
			return database.Lock{By: database.Process(int(l.Pid))}, nil
		}
	}
	return database.Lock{}, nil
}
