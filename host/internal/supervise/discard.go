package supervise

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/nox-mesh/nox-mesh/host/internal/slots"
)

// aside is where a folder is while it is being deleted: no name of a process.
func aside(dir string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".removed")
}

// Discard takes away the folder of a process, durably. One that is gone is no
// error; ErrHeld is, when a shim lives over it or just came up: nothing is
// taken away then. A shim that comes later finds no folder, for it goes at
// once, and whole, before it is deleted.
func Discard(dir string) error {
	if err := Sweep(dir); err != nil {
		return err
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	l, err := acquire(dir, 1)
	if errors.Is(err, ErrHeld) {
		return err
	}
	if err == nil {
		defer l.file.Close()
	} // else there is none, and on a full disk there may be none to make
	if err := os.Rename(dir, aside(dir)); err != nil {
		return err
	}
	if err := slots.SyncDir(filepath.Dir(dir)); err != nil {
		return err
	}
	return Sweep(dir)
}

// Sweep deletes what a Discard that was killed left aside.
func Sweep(dir string) error {
	if _, err := os.Lstat(aside(dir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := os.RemoveAll(aside(dir))
	if errors.Is(err, syscall.ENOTEMPTY) {
		// A shim that was looking for its folder as that went made its lock.
		err = os.RemoveAll(aside(dir))
	}
	if err != nil {
		return err
	}
	return slots.SyncDir(filepath.Dir(dir))
}
