package place

import (
	"errors"
	"fmt"
	"maps"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Begin removes the workshop that a kill left, and takes down what is in the
// place: call it before looking there. Replace then removes nothing that came
// after the look. A place that has a mount point below it is refused. The place is
// locked.
func (p *Place) Begin() (err error) {
	if err := p.Check(); err != nil {
		return err
	}
	if err := p.sweep(); err != nil {
		return err
	}
	p.seen, err = contents(p.Path)
	return err
}

// Replace fills a new directory and puts it in the place, in one rename. What was
// there is removed afterwards; if it changed since Begin it is put back, and the
// new one goes.
func (p *Place) Replace(fill func(next *durable.Dir) error) error {
	attr := durable.Perm(0o755)
	there := false
	var st unix.Stat_t
	err := unix.Fstatat(p.parent.FD(), p.base(), &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil {
		there = true
		attr = durable.Attr{Mode: st.Mode & 0o7777, UID: int(st.Uid), GID: int(st.Gid)}
	} else if !errors.Is(err, unix.ENOENT) {
		return err
	}
	shop, err := p.open()
	if err == nil {
		defer shop.Close()
		err = p.fillAndSwap(shop, attr, there, fill)
	}
	if err != nil {
		_ = p.sweep()
		return err
	}
	if there {
		if err := p.unchanged(shop); err != nil {
			return err
		}
	}
	// The old directory goes only when the new name is on the disk: a power cut
	// could bring the old name back.
	if err := p.parent.Sync(); err != nil {
		return err
	}
	return p.sweep()
}

func (p *Place) fillAndSwap(shop *durable.Dir, attr durable.Attr, there bool, fill func(next *durable.Dir) error) error {
	if err := shop.Mkdir(fresh, attr); err != nil {
		return err
	}
	next, err := durable.OpenDir(p.beside())
	if err != nil {
		return err
	}
	defer next.Close()
	if err := fill(next); err != nil {
		return err
	}
	// Packages that were linked may have been written a moment ago: one sync for
	// all of them, before anybody can see them here.
	if err := unix.Syncfs(next.FD()); err != nil {
		return fmt.Errorf("cannot sync %q: %w", next.Name(), err)
	}
	// What was mounted since Begin is no reason to take it along.
	if err := noMounts(p.Path); err != nil {
		return err
	}
	flags := uint(unix.RENAME_NOREPLACE)
	if there {
		flags = unix.RENAME_EXCHANGE
	}
	err = unix.Renameat2(shop.FD(), fresh, p.parent.FD(), p.base(), flags)
	switch {
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

// unchanged holds, after the exchange, that the old directory is what Begin saw. If
// it is not, somebody wrote there meanwhile: it is put back.
func (p *Place) unchanged(shop *durable.Dir) error {
	now, err := contents(p.beside())
	if err == nil && maps.Equal(p.seen, now) {
		return nil
	}
	if back := unix.Renameat2(shop.FD(), fresh, p.parent.FD(), p.base(), unix.RENAME_EXCHANGE); back != nil {
		return fmt.Errorf("cannot put %q back, which changed meanwhile and is now %q: %w", p.Path, p.beside(), back)
	}
	if err := errors.Join(err, p.parent.Sync(), p.sweep()); err != nil {
		return err
	}
	return fault.Failedf("somebody changed %q meanwhile; it is as they left it", p.Path).Hint("run it again")
}
