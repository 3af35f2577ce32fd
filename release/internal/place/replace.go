package place

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Begin removes the workshop that a kill left, and takes down what is in the
// place: call it before looking there (Dir). Replace then removes nothing that came
// after the look. A place that has a mount point below it is refused. The place is
// locked.
func (p *Place) Begin() error {
	p.forget()
	if err := p.Check(); err != nil {
		return err
	}
	if err := p.sweep(); err != nil {
		return err
	}
	old, err := p.Dir()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	p.old = old
	p.seen, err = contents(old)
	return err
}

// Replace fills a new directory and puts it in the place, in one rename, with the
// owner, the mode and the attributes of what Begin found there. That is removed
// afterwards; if it changed since it is put back, and the new one goes.
func (p *Place) Replace(fill func(next *durable.Dir) error) error {
	shop, err := p.open()
	if err != nil {
		_ = p.sweep()
		return err
	}
	defer shop.Close()
	if err := p.fillAndSwap(shop, fill); err != nil {
		_ = p.clear(shop)
		return err
	}
	if p.old != nil {
		if err := p.unchanged(shop); err != nil {
			return err
		}
	}
	// The old directory goes only when the new name is on the disk: a power cut
	// could bring the old name back.
	if err := p.parent.Sync(); err != nil {
		return err
	}
	return p.clear(shop)
}

func (p *Place) fillAndSwap(shop *durable.Dir, fill func(next *durable.Dir) error) error {
	attr := durable.Perm(0o755)
	if p.old != nil {
		var st unix.Stat_t
		if err := unix.Fstat(p.old.FD(), &st); err != nil {
			return err
		}
		attr = durable.Attr{Mode: st.Mode & 0o7777, UID: int(st.Uid), GID: int(st.Gid)}
	}
	if err := shop.Mkdir(fresh, attr); err != nil {
		return err
	}
	next, err := openAt(shop, fresh)
	if err != nil {
		return err
	}
	defer next.Close()
	if err := fill(next); err != nil {
		return err
	}
	if p.old != nil {
		if err := keepAttributes(p.old, next); err != nil {
			return err
		}
		// What was mounted since Begin is no reason to take it along.
		if err := walk(p.old, nil); err != nil {
			return err
		}
	}
	// Packages that were linked may have been written a moment ago: one sync for
	// all of them, before anybody can see them here.
	if err := unix.Syncfs(next.FD()); err != nil {
		return fmt.Errorf("cannot sync %q: %w", next.Name(), err)
	}
	flags := uint(unix.RENAME_NOREPLACE)
	if p.old != nil {
		flags = unix.RENAME_EXCHANGE
	}
	err = unix.Renameat2(shop.FD(), fresh, p.parent.FD(), p.base(), flags)
	switch {
	case errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOENT):
		return p.changed()
	case errors.Is(err, unix.EBUSY):
		return fault.Failedf("cannot replace %q: it is a mount point", p.Path).Hint("use a directory below it")
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
		return fault.Failedf("cannot replace %q: this file system exchanges no directories", p.Path).
			Hint("use ext4, xfs, btrfs or tmpfs")
	case err != nil:
		return fmt.Errorf("cannot replace %q: %w", p.Path, err)
	}
	return nil
}

// unchanged holds, after the exchange, that what came out of the place is the
// directory that Begin saw, as it was. If it is not, somebody was there meanwhile: it
// is put back, whatever it is.
func (p *Place) unchanged(shop *durable.Dir) error {
	same, err := p.isSeen(shop)
	if same {
		return nil
	}
	if back := unix.Renameat2(shop.FD(), fresh, p.parent.FD(), p.base(), unix.RENAME_EXCHANGE); back != nil {
		return fmt.Errorf("cannot put %q back, which changed meanwhile and is now %q: %w", p.Path, filepath.Join(shop.Name(), fresh), back)
	}
	if err := errors.Join(err, p.parent.Sync(), p.clear(shop)); err != nil {
		return err
	}
	return p.changed()
}

func (p *Place) isSeen(shop *durable.Dir) (bool, error) {
	was, err := openAt(shop, fresh)
	if errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer was.Close()
	var is, old unix.Stat_t
	if err := errors.Join(unix.Fstat(was.FD(), &is), unix.Fstat(p.old.FD(), &old)); err != nil {
		return false, err
	}
	now, err := contents(was)
	return err == nil && inodeOf(&is) == inodeOf(&old) && maps.Equal(p.seen, now), err
}

func (p *Place) changed() error {
	return fault.Failedf("somebody changed %q meanwhile; it is as they left it", p.Path).Hint("run it again")
}
