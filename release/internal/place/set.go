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
	Path string
	dir  *durable.Dir
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
	for range 100 {
		s, err := openSet(ctx, path)
		// Whoever completed the set may have removed it meanwhile: look again.
		if !errors.Is(err, ErrGone) && !errors.Is(err, unix.ENOENT) {
			return s, err
		}
	}
	return nil, fault.Failedf("cannot lock %q: %w", path, ErrGone).Hint("run it again")
}

func openSet(ctx context.Context, path string) (s *Set, err error) {
	// Of several that make it at once one does; each holds its mark under the lock.
	if err := unix.Mkdir(path, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("cannot make %q: %w", path, err)
	}
	dir, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = dir.Close()
		}
	}()
	if err := flock(ctx, dir.FD()); err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", path, err)
	}
	var is, there unix.Stat_t
	if err := unix.Fstat(dir.FD(), &is); err != nil {
		return nil, err
	}
	if err := unix.Lstat(path, &there); errors.Is(err, unix.ENOENT) || err == nil && inodeOf(&is) != inodeOf(&there) {
		return nil, ErrGone
	} else if err != nil {
		return nil, err
	}
	ours, _, err := marked(path)
	if err == nil && !ours {
		err = writeMark(path)
	}
	if err != nil {
		return nil, err
	}
	return &Set{path, dir}, nil
}

// Close also lets others have it.
func (s *Set) Close() { _ = s.dir.Close() }

// Remove removes the set.
func (s *Set) Remove() error {
	_, names, err := marked(s.Path)
	if err != nil {
		return err
	}
	slices.Sort(names)
	if err := empty(s.dir, names); err != nil {
		return err
	}
	if err := unix.Rmdir(s.Path); err != nil {
		return fmt.Errorf("cannot remove %q: %w", s.Path, err)
	}
	return nil
}
