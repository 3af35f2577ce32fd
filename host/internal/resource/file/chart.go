package file

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/nox-mesh/nox-mesh/internal/layout"
	"golang.org/x/sys/unix"
)

// An inode is a directory, however it is reached, and where it was reached by.
type inode struct{ dev, ino, mount uint64 }

func (i inode) same(o inode) bool { return i.dev == o.dev && i.ino == o.ino }

// directoryAt says which directory name below fd is; ok is false when it is
// none.
func directoryAt(fd int, name string, flags int) (i inode, ok bool, err error) {
	var st unix.Statx_t
	const want = unix.STATX_TYPE | unix.STATX_INO | unix.STATX_MNT_ID
	if err := unix.Statx(fd, name, flags|unix.AT_NO_AUTOMOUNT, want, &st); err != nil {
		return inode{}, false, err
	}
	i = inode{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino, st.Mnt_id}
	return i, st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

// A landmark is a directory that is the host's own or leads to it, by the path
// the host knows it by.
type landmark struct {
	inode
	path string
	// below says that what is in it may be the host's own.
	below bool
}

// A chart is what the installation owns, and the landmarks of it.
type chart struct {
	own   []layout.Own
	marks []landmark

	// known is where the directories are that were looked at, or nil when each is
	// looked at anew.
	known map[inode]whereabouts
	mu    sync.Mutex
}

// whereabouts is where a directory is: the paths it has, seen from the landmarks,
// and the landmarks that count there.
type whereabouts struct {
	paths []string
	marks []landmark
}

// whereabouts says where the directory is that the place is held by.
func (k *Kind) whereabouts(p *place, c *chart) (whereabouts, error) {
	here, _, err := directoryAt(p.dir.FD(), ".", 0)
	if err != nil {
		return whereabouts{}, err
	}
	c.mu.Lock()
	w, ok := c.known[here]
	c.mu.Unlock()
	if ok {
		return w, nil
	}
	way, err := k.way(p, here)
	if err != nil {
		return whereabouts{}, err
	}
	w.marks = k.elsewhere(c, way)
	for up, i := range way {
		rest := path.Join(p.names[len(p.names)-up:]...)
		for _, m := range w.marks {
			if m.same(i) {
				w.paths = append(w.paths, path.Join(m.path, rest))
			}
		}
	}
	c.mu.Lock()
	if c.known != nil {
		c.known[here] = w
	}
	c.mu.Unlock()
	return w, nil
}

// survey looks where the host's own is: dozens of directories, for what may be
// thousands of files.
func (k *Kind) survey() *chart {
	c := &chart{own: layout.OwnPaths(k.layout.Prefixes()...)}
	seen := map[string]bool{}
	for _, o := range c.own {
		for p := o.Path; !seen[p]; p = path.Dir(p) {
			seen[p] = true
			if i, ok, err := directoryAt(unix.AT_FDCWD, k.layout.Path(p), 0); err == nil && ok {
				c.marks = append(c.marks, landmark{i, p, p == o.Path || path.Base(o.Path) == layout.HostUnit && p == path.Dir(o.Path)})
			}
		}
	}
	return c
}

// elsewhere returns the landmarks and what is below them, when one of the directories on
// the way is of their file system and reached by another mount: it may be a
// part of theirs.
func (k *Kind) elsewhere(c *chart, way []inode) []landmark {
	marks := slices.Clip(c.marks) // the chart's own stay as they are
	for _, m := range c.marks {
		if !m.below || !slices.ContainsFunc(way, func(i inode) bool { return i.dev == m.dev && (i.mount != m.mount || i.mount == 0) }) {
			continue
		}
		_ = filepath.WalkDir(k.layout.Path(m.path)+"/", func(p string, d os.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // what cannot be read by us cannot be written either
			}
			rel, err := filepath.Rel(k.layout.Path(m.path), p)
			if i, ok, serr := directoryAt(unix.AT_FDCWD, p, unix.AT_SYMLINK_NOFOLLOW); err == nil && serr == nil && ok {
				marks = append(marks, landmark{inode: i, path: path.Join(m.path, rel)})
			}
			return nil
		})
	}
	return marks
}

// way returns the directories from that of the name, which is here, up to the root.
func (k *Kind) way(p *place, here inode) ([]inode, error) {
	root, _, err := directoryAt(unix.AT_FDCWD, k.layout.Path("/"), 0)
	if err != nil {
		return nil, err
	}
	out := []inode{here}
	for up := range len(p.names) {
		i, _, err := directoryAt(p.dir.FD(), strings.Repeat("../", up)+"..", 0)
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	if !out[len(out)-1].same(root) {
		return nil, errMoved
	}
	return out, nil
}
