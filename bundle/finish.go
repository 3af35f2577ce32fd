package bundle

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// finish puts the file in place, after it was read back. What was there at the
// beginning is exchanged with it, looked at once more, and removed; what is not what
// it was is put back, and the new file goes.
func (d *destination) finish() error {
	var ours, there unix.Stat_t
	if err := errors.Join(unix.Fstat(d.FD(), &ours), d.stat(d.temp(), &there)); err != nil {
		return err
	}
	if ours.Dev != there.Dev || ours.Ino != there.Ino {
		return fmt.Errorf("somebody put another file in the place of %q", d.temp())
	}
	if err := d.settle(); err != nil {
		return err
	}
	if err := d.swap(); err != nil {
		return err
	}
	// The old file goes only when the new name is on the disk.
	if err := d.dir.Sync(); err != nil {
		return err
	}
	d.Abort()
	return d.dir.Sync()
}

// settle makes the file durable, with its owner and, since chown(2) clears bits of
// it, then its mode.
func (d *destination) settle() error {
	if d.attr.UID != durable.Keep || d.attr.GID != durable.Keep {
		if err := unix.Fchown(d.FD(), d.attr.UID, d.attr.GID); err != nil {
			return fmt.Errorf("cannot give %q its owner: %w", d.path(), err)
		}
	}
	if err := unix.Fchmod(d.FD(), d.attr.Mode); err != nil {
		return fmt.Errorf("cannot give %q its mode: %w", d.path(), err)
	}
	if err := unix.Fsync(d.FD()); err != nil {
		return fmt.Errorf("cannot sync %q: %w", d.path(), err)
	}
	return nil
}

// swap gives the file its name, and its temporary one to what was there.
func (d *destination) swap() error {
	same, err := d.unchanged(d.base)
	if err != nil {
		return err
	}
	if !same {
		return changed(d.path())
	}
	flags := uint(unix.RENAME_NOREPLACE)
	if d.old != nil {
		flags = unix.RENAME_EXCHANGE
		// Under the temporary name too it is in use (free).
		_ = unix.Flock(int(d.old.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	switch err := rename(d.dir.FD(), d.temp(), d.base, flags); {
	case errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOENT):
		return changed(d.path())
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
		// This file system cannot do that in one (exfat, nfs): what was there was
		// looked at a moment ago.
		if err := unix.Renameat(d.dir.FD(), d.temp(), d.dir.FD(), d.base); err != nil {
			return fmt.Errorf("cannot put %q in place: %w", d.path(), err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("cannot put %q in place: %w", d.path(), err)
	}
	if d.old == nil {
		return nil
	}
	// To be given another name changes its inode, and nothing else.
	var is unix.Stat_t
	if err := d.stat(d.temp(), &is); err == nil && sameContent(&is, &d.was) {
		return nil
	}
	if err := rename(d.dir.FD(), d.temp(), d.base, unix.RENAME_EXCHANGE); err != nil {
		// Then it stays where it is.
		d.Pending = nil
		return fmt.Errorf("cannot put %q back, which changed meanwhile and is now %q: %w", d.path(), d.temp(), err)
	}
	return errors.Join(d.dir.Sync(), changed(d.path()))
}

// rename is renameat2(2), in one directory; a test makes it that of a file system
// that knows no flags.
var rename = func(dir int, from, to string, flags uint) error {
	return unix.Renameat2(dir, from, dir, to, flags)
}

// unchanged reports whether the file name is what was there at the beginning, to its
// owner and mode.
func (d *destination) unchanged(name string) (bool, error) {
	var is unix.Stat_t
	err := d.stat(name, &is)
	if errors.Is(err, unix.ENOENT) {
		return d.old == nil, nil
	}
	return d.old != nil && sameContent(&is, &d.was) && is.Ctim == d.was.Ctim, err
}

func sameContent(a, b *unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.Mtim == b.Mtim
}

func (d *destination) stat(name string, st *unix.Stat_t) error {
	if err := unix.Fstatat(d.dir.FD(), name, st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("cannot look at %q in %q: %w", name, d.dir.Name(), err)
	}
	return nil
}
