package place

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Set is a folder that several runs fill, one at a time, until the last one removes
// it. It stays when one is killed.
type Set struct {
	// Path is absolute.
	Path        string
	parent, dir *durable.Dir
}

// OpenSet opens the set at path, which is made when it is not there, and waits until
// nobody else has it. A folder there that is not empty and has no mark is somebody's,
// as is whatever a symlink leads to.
func OpenSet(ctx context.Context, path string) (*Set, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	parent, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	for range 100 {
		dir, err := openSet(ctx, parent, filepath.Base(path))
		if err == nil {
			return &Set{path, parent, dir}, nil
		}
		// Whoever completed the set may have removed it meanwhile: look again.
		if !errors.Is(err, ErrGone) && !errors.Is(err, unix.ENOENT) {
			_ = parent.Close()
			return nil, err
		}
	}
	_ = parent.Close()
	return nil, fault.Failedf("cannot lock %q: %w", path, ErrGone).Hint("run it again")
}

func openSet(ctx context.Context, parent *durable.Dir, name string) (_ *durable.Dir, err error) {
	// Of several that make it at once one does; each holds its mark under the lock.
	if err := unix.Mkdirat(parent.FD(), name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("cannot make %q: %w", filepath.Join(parent.Name(), name), err)
	}
	dir, err := openFolder(parent, name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = dir.Close()
		}
	}()
	if err := flock(ctx, dir.FD(), func() {}); err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", dir.Name(), err)
	}
	var is, there unix.Stat_t
	if err := unix.Fstat(dir.FD(), &is); err != nil {
		return nil, err
	}
	err = unix.Fstatat(parent.FD(), name, &there, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || err == nil && inodeOf(&is) != inodeOf(&there) {
		return nil, ErrGone
	} else if err != nil {
		return nil, err
	}
	ours, _, err := marked(dir)
	if err == nil && !ours {
		err = writeMark(dir)
	}
	return dir, err
}

// Close also lets others have it.
func (s *Set) Close() { _ = errors.Join(s.dir.Close(), s.parent.Close()) }

// Remove removes the set.
func (s *Set) Remove() error {
	_, names, err := marked(s.dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	if err := empty(s.dir, names); err != nil {
		return err
	}
	if err := unix.Unlinkat(s.parent.FD(), filepath.Base(s.Path), unix.AT_REMOVEDIR); err != nil {
		return fmt.Errorf("cannot remove %q: %w", s.Path, err)
	}
	return nil
}
