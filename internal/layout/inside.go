package layout

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Inside refuses (kind Refused) a Root from which a symlink leads out: in the
// host's own state, on the way to it, to /run/nox-mesh, or to one of paths,
// which are as Path made them. In a tree that stands for a machine an absolute
// link means that tree, but this system would follow it into its own.
//
// It judges the tree as it lies there; one that somebody else changes at the
// same time is not safe to work in. The machine itself is always inside.
func (l Layout) Inside(paths ...string) error {
	if l.IsMachine() {
		return nil
	}
	root, err := filepath.EvalSymlinks(l.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it will be made; nothing in it can lead out
	}
	if err != nil {
		return err
	}
	for _, p := range append([]string{l.State(), filepath.Dir(l.HostSocket())}, paths...) {
		if err := l.inside(root, p); err != nil {
			return err
		}
	}
	err = filepath.WalkDir(l.State()+"/", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink == 0 {
			return err
		}
		return l.inside(root, path)
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // what is not there, or may not be read, will be said by who wants it
	}
	return err
}

// inside follows path as far as it is there. root is the real Root.
func (l Layout) inside(root, path string) error {
	at := path
	for {
		_, err := os.Lstat(at)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || at == l.Root {
			return err
		}
		at = filepath.Dir(at)
	}
	real, err := filepath.EvalSymlinks(at)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Refusedf("%q is a symlink to nowhere", at).Hint("remove it")
	}
	if err != nil {
		return err
	}
	if real != root && !strings.HasPrefix(real, strings.TrimSuffix(root, "/")+"/") {
		return fault.Refusedf("%q leads out of %q, to %q", at, l.Root, real).
			Hint("make the link relative, within %q", l.Root)
	}
	return nil
}
