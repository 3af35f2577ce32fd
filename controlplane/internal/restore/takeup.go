package restore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/backup"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// moved are the names that a restore moves, the state last: where it is missing, and
// mesh.json is not, nothing would be founded in its place.
var moved = []string{contentName, backup.Trust, backup.Founded, backup.State}

// TakeUp puts what a restore laid down in its place, and returns what it was; nil
// when there is nothing. Whoever calls it opens the state before release, so that no
// second control plane opens it in between. It is for the start, before anything of
// the state is open.
func TakeUp(l layout.Layout) (o *Order, release func(), err error) {
	dir, err := os.Open(l.ControllerState())
	if err != nil {
		return nil, nil, err
	}
	fail := func(err error) (*Order, func(), error) {
		dir.Close()
		return nil, nil, err
	}
	if err := flock(dir, unix.LOCK_EX); err != nil {
		return fail(err)
	}
	if _, err := os.Lstat(ready(l)); errors.Is(err, fs.ErrNotExist) {
		return nil, func() { dir.Close() }, nil
	}
	if o, err = Waiting(l); err != nil {
		return fail(err)
	}
	if o == nil {
		// Killed between the last two steps: everything is in its place.
		if err := removeEmpty(ready(l)); err != nil {
			return fail(fault.Refusedf("cannot take up what a restore laid down: %w", err).
				Hint("run `mesh-controller restore FILE` again, after %q is moved elsewhere", ready(l)))
		}
		return nil, func() { dir.Close() }, nil
	}
	held, err := alone(l.ControllerStore())
	if err != nil {
		return fail(err)
	}
	defer held.Close() // a nil file closes too
	if err := o.move(l); err != nil {
		return fail(fault.Failedf("cannot take up what a restore laid down: %w", err))
	}
	return o, func() { dir.Close() }, nil
}

// alone takes the lock that bbolt has on an open state (flock(2)).
func alone(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := flock(f, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fault.Failedf("cannot take up what a restore laid down: a control plane has the state open").
			Hint("there is one control plane a machine; stop that one first")
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (o *Order) move(l layout.Layout) error {
	former := filepath.Join(l.ControllerState(), o.Former)
	if err := durable.MkdirAll(former, 0o700); err != nil {
		return err
	}
	for _, name := range moved {
		from, to, aside := filepath.Join(ready(l), name), filepath.Join(l.ControllerState(), name), filepath.Join(former, name)
		switch there, err := exists(from); {
		case err != nil:
			return err
		case !there:
			continue // it is in its place, or was not in the backup
		}
		was, err := exists(to)
		if err != nil {
			return err
		}
		if was {
			if err := durable.Rename(to, aside); err != nil {
				return err
			}
		}
		if err := durable.Rename(from, to); err != nil {
			return err
		}
	}
	for _, name := range []string{lockName, orderName} {
		if err := durable.Remove(filepath.Join(ready(l), name)); err != nil {
			return err
		}
	}
	return removeEmpty(ready(l))
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func removeEmpty(dir string) error {
	d, err := durable.OpenDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Rmdir(filepath.Base(dir)); err != nil {
		return fmt.Errorf("%w: it is not whole", err)
	}
	return nil
}
