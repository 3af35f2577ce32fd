// Package place replaces a directory whole: a new one is filled beside it, synced,
// and exchanged with it by one rename (renameat2(2)), so that whoever reads sees
// the old one or the new one at every instant, also after a kill or a power cut.
//
// Who replaces holds a lock on the parent. The new directory is filled in a
// workshop, a folder beside the place that says in a file of its own whose it is;
// the old one goes there by the exchange. What a kill left is swept by the next
// who replaces, and by nobody else's name: a folder that does not say that it is a
// workshop is somebody's, and left (an empty one holds nothing that could be lost,
// and is used). A mount point cannot be exchanged, and a directory with one below it
// is refused: what is mounted lies elsewhere and would be removed with the rest. That
// is looked for at the beginning and before each step that removes; who mounts in
// between is not kept from it.
//
// The same mark is in two other folders: a Set, which several runs fill together, and
// a Temp, where one run works. Of the first what a kill left is taken up, of the second
// it is removed by the next that needs one: a lock says that its owner lives.
//
// It does not look at what the directory holds: whether that may go is for the
// caller to know.
package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Place is where a directory is, or will be.
type Place struct {
	// Path is absolute, without symlinks.
	Path   string
	parent *durable.Dir
	id     inode // of the parent
	seen   map[string]string
}

// An inode is a device and a number on it.
type inode [2]uint64

func inodeOf(st *unix.Stat_t) inode { return inode{st.Dev, st.Ino} }

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
	p.id = inodeOf(&st)
	return p, nil
}

// Resolve is the Path that the place of dir has, or would have once its parents are
// made.
func Resolve(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || path == "/" {
			return "", err
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

func (p *Place) base() string { return filepath.Base(p.Path) }

// Close also unlocks.
func (p *Place) Close() { _ = p.parent.Close() }

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
