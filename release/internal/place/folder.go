package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A folder of ours says in a file of its own whose it is: the mark. It is written
// first and removed last, both synced, so that whatever else is in it can be told
// from a stranger's folder at any instant.
const (
	mark     = "MESH-RELEASE"
	markText = "mesh-release fills a directory here that takes the place of the one beside it.\n" +
		"What is in this folder is removed when it runs again.\n"
)

// stranger is that a folder has our name and is not ours.
func stranger(path string) *fault.Error {
	return fault.Refusedf("%q is in the way: mesh-release did not make it", path).
		Hint("look at what it holds, and move it elsewhere")
}

// marked tells whose the folder at path is: ours when it has the mark, nobody's when
// it is empty, or a kill left no more than half a mark. It returns what else is in
// it.
func marked(path string) (ours bool, names []string, err error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return false, nil, err
	}
	for _, e := range entries {
		switch e.Name() {
		case mark:
			if ours = isMark(path, e); !ours {
				return false, nil, stranger(path)
			}
		case durable.TempName(mark): // a kill while it was marked
		default:
			names = append(names, e.Name())
		}
	}
	if len(names) > 0 && !ours {
		return false, nil, stranger(path)
	}
	return ours, names, nil
}

func isMark(dir string, e fs.DirEntry) bool {
	fi, err := e.Info()
	if err != nil || !fi.Mode().IsRegular() || fi.Size() != int64(len(markText)) {
		return false
	}
	b, err := os.ReadFile(filepath.Join(dir, mark))
	return err == nil && string(b) == markText
}

func writeMark(path string) error {
	return durable.WriteFile(filepath.Join(path, mark), []byte(markText), 0o600)
}

// openFolder opens a folder itself, not what a symlink in its place leads to.
func openFolder(path string) (*durable.Dir, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil, stranger(path)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return durable.DirOf(fd, path), nil
}

// empty removes what is in a marked folder, the mark last; names are what is in it
// besides.
func empty(dir *durable.Dir, names []string) error {
	// Nothing goes when one of them cannot.
	if err := noMounts(dir.Name()); err != nil {
		return err
	}
	for _, name := range names {
		if err := remove(filepath.Join(dir.Name(), name)); err != nil {
			return err
		}
	}
	// A power cut must not bring them back without the mark.
	if err := dir.Sync(); err != nil {
		return err
	}
	if err := errors.Join(dir.Sweep(mark), dir.Remove(mark)); err != nil {
		return fmt.Errorf("cannot clear %q: %w", dir.Name(), err)
	}
	return nil
}
