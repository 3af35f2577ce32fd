package place

import (
	"errors"
	"fmt"
	"io"
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

// marked tells whose the folder dir is: ours when it has the mark, nobody's when it
// is empty, or a kill left no more than half a mark. It returns what else is in it.
func marked(dir *durable.Dir) (ours bool, others []string, err error) {
	names, err := namesIn(dir)
	if err != nil {
		return false, nil, err
	}
	for _, name := range names {
		switch name {
		case mark:
			if ours = hasMark(dir); !ours {
				return false, nil, stranger(dir.Name())
			}
		case durable.TempName(mark): // a kill while it was marked
		default:
			others = append(others, name)
		}
	}
	if len(others) > 0 && !ours {
		return false, nil, stranger(dir.Name())
	}
	return ours, others, nil
}

func hasMark(dir *durable.Dir) bool {
	fd, err := unix.Openat(dir.FD(), mark, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), filepath.Join(dir.Name(), mark))
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() || fi.Size() != int64(len(markText)) {
		return false
	}
	b := make([]byte, len(markText))
	_, err = io.ReadFull(f, b)
	return err == nil && string(b) == markText
}

func writeMark(dir *durable.Dir) error {
	f, err := dir.Create(mark, durable.Perm(0o600))
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write([]byte(markText)); err != nil {
		return err
	}
	return f.Commit()
}

// openFolder opens a folder of ours in d.
func openFolder(d *durable.Dir, name string) (*durable.Dir, error) {
	dir, err := openAt(d, name)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, stranger(filepath.Join(d.Name(), name))
	}
	return dir, err
}

// empty removes what is in a marked folder, the mark last; names are what is in it
// besides.
func empty(dir *durable.Dir, names []string) error {
	// Nothing goes when one of them cannot.
	if err := walk(dir, nil); err != nil {
		return err
	}
	for _, name := range names {
		if err := remove(dir, name); err != nil {
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
