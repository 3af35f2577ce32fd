// Package place replaces a directory whole: a new one is filled beside it, synced,
// and exchanged with it by one rename (renameat2(2)), so that whoever reads sees
// the old one or the new one at every instant, also after a kill or a power cut.
//
// Who replaces holds a lock on the parent. What a kill left beside the directory,
// a new one that was not finished or the old one after the exchange, is swept by
// the next who replaces. It does not look at what the directory holds: whether
// that may go is for the caller to know. A mount point cannot be exchanged.
package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Place is where a directory is, or will be.
type Place struct {
	// Path is absolute, without symlinks.
	Path   string
	parent *durable.Dir
	id     [2]uint64 // of the parent: device and inode
	seen   map[string]string
}

// Open finds the place of dir. With create, parents that are not there are
// made.
func Open(dir string, create bool) (*Place, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if create {
		if err := durable.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		var parent string
		parent, err = filepath.EvalSymlinks(filepath.Dir(path))
		real = filepath.Join(parent, filepath.Base(path))
	}
	if err != nil {
		return nil, err
	}
	p := &Place{Path: real}
	if p.parent, err = durable.OpenDir(filepath.Dir(real)); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(p.parent.FD(), &st); err != nil {
		p.Close()
		return nil, err
	}
	p.id = [2]uint64{st.Dev, st.Ino}
	return p, nil
}

func (p *Place) base() string { return filepath.Base(p.Path) }

// next is the name, beside the directory, of the one that will replace it.
func (p *Place) next() string { return "." + p.base() + ".next" }

// Close also unlocks.
func (p *Place) Close() { _ = p.parent.Close() }

// Lock waits until nobody else changes what is in the parents of the places. The
// lock is flock(2) on the parent itself, which outlives no process and leaves no
// file.
func Lock(ctx context.Context, places ...*Place) error {
	slices.SortFunc(places, func(a, b *Place) int { return slices.Compare(a.id[:], b.id[:]) })
	places = slices.CompactFunc(places, func(a, b *Place) bool { return a.id == b.id })
	for _, p := range places {
		for {
			err := unix.Flock(p.parent.FD(), unix.LOCK_EX|unix.LOCK_NB)
			if err == nil {
				break
			}
			if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("cannot lock %q: %w", p.parent.Name(), err)
			}
			// A blocking flock could not be given up.
			select {
			case <-ctx.Done():
				return fmt.Errorf("cannot lock %q: %w", p.parent.Name(), ctx.Err())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// Begin removes the directory that a kill left beside the place, a new one that was
// not finished or the old one after the exchange, and takes down what is in the
// place: call it before looking there. Replace then removes nothing that came
// after the look. The place is locked.
func (p *Place) Begin() (err error) {
	if err := p.sweep(); err != nil {
		return err
	}
	p.seen, err = contents(p.Path)
	return err
}

func (p *Place) sweep() error { return os.RemoveAll(p.beside()) }

func (p *Place) beside() string { return filepath.Join(p.parent.Name(), p.next()) }

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
	if err := p.parent.Mkdir(p.next(), attr); err != nil {
		return err
	}
	if err := p.fillAndSwap(there, fill); err != nil {
		_ = p.sweep()
		return err
	}
	if there {
		if err := p.unchanged(); err != nil {
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

func (p *Place) fillAndSwap(there bool, fill func(next *durable.Dir) error) error {
	next, err := durable.OpenDir(filepath.Join(p.parent.Name(), p.next()))
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
	flags := uint(unix.RENAME_NOREPLACE)
	if there {
		flags = unix.RENAME_EXCHANGE
	}
	err = unix.Renameat2(p.parent.FD(), p.next(), p.parent.FD(), p.base(), flags)
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

// NotWhereWeAre refuses to replace the directory the process is in: whoever
// called would go on in one that is not there any more.
func (p *Place) NotWhereWeAre() error {
	here, err := os.Stat(".")
	if err != nil {
		return err
	}
	there, err := os.Stat(p.Path)
	if err != nil {
		return nil // it is not there, so nobody is in it
	}
	inside := os.SameFile(here, there)
	if wd, err := os.Getwd(); err == nil && !inside {
		wd, _ = filepath.EvalSymlinks(wd)
		inside = strings.HasPrefix(wd, p.Path+"/")
	}
	if inside {
		return fault.Usagef("cannot replace the directory you are in").Hint("go one up and name it")
	}
	return nil
}
