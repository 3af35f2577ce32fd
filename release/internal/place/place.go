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
// is looked for at the beginning, before the exchange, and at each directory that is
// removed.
//
// The parent may belong to somebody else, who swaps names while we are at work. It is
// opened once, and from then on all is reached from what is open, and no symlink in
// it is followed: what they do can spoil what is below their directory, and nothing
// elsewhere.
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
	Path string
	// Note, if set, is told what a person should know while it takes long.
	Note func(text string)

	parent *durable.Dir
	id     inode // of the parent
	// old is the directory that Begin found, or nil, and seen what was in it.
	old  *durable.Dir
	seen map[string]string
}

// An inode is a device and a number on it.
type inode [2]uint64

func inodeOf(st *unix.Stat_t) inode { return inode{st.Dev, st.Ino} }

// Open finds the place of dir. With create, parents that are not there are
// made.
func Open(dir string, create bool) (*Place, error) {
	real, err := Resolve(dir)
	if err != nil {
		return nil, err
	}
	top := filepath.Dir(real)
	if create {
		if err := durable.MkdirAll(top, 0o755); err != nil {
			return nil, err
		}
	}
	meanwhile(top)
	p := &Place{Path: real}
	if p.parent, err = openReal(top); err != nil {
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

// openReal opens a directory whose path has no symlinks: one that is there now was
// put there meanwhile, and would lead into a directory that nobody named.
func openReal(path string) (*durable.Dir, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // before Linux 5.6, or an old filter of system calls
		return durable.OpenDir(path)
	case errors.Is(err, unix.ELOOP):
		return nil, fault.Failedf("somebody put a symlink into %q meanwhile", path).Hint("see whose it is, and run it again")
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return durable.DirOf(fd, path), nil
}

// Resolve is the Path that the place of dir has, or would have once its parents are
// made. A symlink to nothing is refused: it is somebody's word on where the
// directory is.
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
		if fi, err := os.Lstat(path); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return "", fault.Refusedf("%q is a symlink, and what it leads to is not there", path).
				Hint("make the directory it leads to, or remove the symlink")
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

// Dir opens the directory in the place: after Begin the one that Begin found. It is
// fs.ErrNotExist when there is none.
func (p *Place) Dir() (*durable.Dir, error) {
	if p.old != nil {
		return openAt(p.old, ".")
	}
	d, err := openAt(p.parent, p.base())
	if errors.Is(err, unix.ENOTDIR) {
		return nil, fault.Refusedf("%q is there, and no directory", p.Path).Hint("give another name, or move it away")
	}
	return d, err
}

func (p *Place) base() string { return filepath.Base(p.Path) }

// Close also unlocks.
func (p *Place) Close() {
	p.forget()
	_ = p.parent.Close()
}

func (p *Place) forget() {
	if p.old != nil {
		_ = p.old.Close()
	}
	p.old, p.seen = nil, nil
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
