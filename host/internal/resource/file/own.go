package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// What is the host's own is refused where the directory of the name is held
// open: by then no symlink, mount or rename leads elsewhere any more. The
// directories from there up to the root are compared with those that lead to
// the host's own, by device and inode, and each that is one of them gives the
// path a spelling that declaration.File.Own can judge. What is spelled
// "/mnt/b/host/x", where /mnt/b is the state directory once more, is judged as
// "/var/lib/nox-mesh/host/x".

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

// way returns the directories from that of the name up to the root.
func (k *Kind) way(p *place) ([]inode, error) {
	root, _, err := directoryAt(unix.AT_FDCWD, k.layout.Path("/"), 0)
	if err != nil {
		return nil, err
	}
	var out []inode
	for up := range len(p.names) + 1 {
		i, _, err := directoryAt(p.dir.FD(), strings.Repeat("../", up)+".", 0)
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

// spellings returns the paths the place has, seen from the landmarks.
func (k *Kind) spellings(p *place, c *chart) ([]string, error) {
	way, err := k.way(p)
	if err != nil {
		return nil, err
	}
	marks := k.elsewhere(c, way)
	var out []string
	for up, i := range way {
		rest := append(slices.Clone(p.names[len(p.names)-up:]), p.missing...)
		for _, m := range marks {
			if m.same(i) {
				out = append(out, path.Join(m.path, path.Join(rest...), p.name))
			}
		}
	}
	if len(p.missing) == 0 {
		i, ok, err := directoryAt(p.dir.FD(), p.name, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && !isNotExist(err) {
			return nil, err
		}
		for _, m := range marks {
			if ok && m.same(i) {
				out = append(out, m.path)
			}
		}
	}
	return out, nil
}

// mayTouch refuses the file when its place is the host's own, whatever it is
// called.
func (k *Kind) mayTouch(p *place, w *wish) error {
	if err := notProcess(p.dir.FD(), path.Dir(p.path)); err != nil {
		return err
	}
	c := k.chart
	if c == nil {
		c = k.survey()
	}
	spellings, err := k.spellings(p, c)
	if err != nil {
		return err
	}
	units := w.file.InUnitDir()
	for _, s := range spellings {
		f := *w.file
		f.Path = s
		if _, why := f.Own(c.own); why != "" {
			return fault.Refusedf("it is the host's to decide: %s", why)
		}
		units = units || f.InUnitDir()
	}
	switch {
	case units && w.Kind == file && w.file.Content == nil:
		return k.mayBeUnit(w)
	case units && w.Kind == symlink:
		return k.mayLead(p, w, c, spellings)
	}
	return nil
}

// mayLead is mayTouch for where a symlink in systemd's directories leads in the
// end, through all that are there now.
func (k *Kind) mayLead(p *place, w *wish, c *chart, spellings []string) error {
	to, err := k.end(p, w.Target, c)
	if err != nil {
		return fault.Refusedf("cannot tell where %q leads: %w", w.Target, err)
	}
	for _, name := range append(spellings, w.file.Path) { // one of them is in systemd's directories
		f := *w.file
		f.Path, f.Target = name, to
		if _, why := f.Own(c.own); why != "" {
			return fault.Refusedf("it leads to %q in the end: %s", to, why)
		}
	}
	return nil
}

// end follows a symlink with that target at the place, and the symlinks it
// leads to. What is not there stays as it is written; what is in systemd's
// directories is spelled so.
func (k *Kind) end(p *place, target string, c *chart) (string, error) {
	from := p.real()
	for range maxLinks {
		// Where a ".." behind a name leads depends on what the name is.
		if strings.Count(target, "..") != strings.Count(path.Clean(target), "..") {
			return "", fmt.Errorf("%q has a %q behind a name", target, "..")
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(from), target)
		}
		at, err := k.open(path.Clean(target))
		if err != nil {
			return "", err
		}
		from = at.real()
		name, next, err := k.hop(at, c)
		at.close()
		if err != nil || next == "" {
			return name, err
		}
		target = next
	}
	return "", unix.ELOOP
}

// hop returns how the place is spelled, and the target of the symlink there, or
// "".
func (k *Kind) hop(p *place, c *chart) (name, target string, err error) {
	if err := notProcess(p.dir.FD(), path.Dir(p.path)); err != nil {
		return "", "", err
	}
	name = p.real()
	spellings, err := k.spellings(p, c)
	if err != nil {
		return "", "", err
	}
	for _, s := range spellings {
		if f := (declaration.File{Path: s}); f.InUnitDir() {
			name = s
		}
	}
	if len(p.missing) > 0 {
		return name, "", nil
	}
	target, err = readlink(p.dir.FD(), p.name)
	if isNotExist(err) || errors.Is(err, unix.EINVAL) { // EINVAL: no symlink (readlink(2))
		err = nil
	}
	return name, target, err
}

// maxUnit bounds the content that is looked at as a unit, in bytes.
const maxUnit = 1 << 20

// mayBeUnit is mayTouch for content that comes by its digest. What cannot be
// read is for others to say; what was read is what is written, because it is
// hashed then.
func (k *Kind) mayBeUnit(w *wish) error {
	if !declaration.UnitText(path.Base(w.file.Path)) {
		return nil
	}
	f, err := k.content.Open(w.file.Source)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxUnit+1))
	switch {
	case err != nil:
		return nil
	case len(b) > maxUnit:
		return fault.Refusedf("it is larger than a unit can be (%d bytes)", maxUnit)
	case digest.FromBytes(b) != w.file.Source:
		return nil
	}
	if why := declaration.OwnInUnit(string(b)); why != "" {
		return fault.Refusedf("its content %s", why)
	}
	return nil
}

// Review refuses a file that Apply would refuse for being the host's own, as
// far as the machine shows that now.
func (k *Kind) Review(r declaration.Resource) error {
	w := wishOf(r.File)
	p, err := k.open(r.File.Path)
	if err == nil {
		defer p.close()
		err = k.mayTouch(p, w)
	}
	if !errors.Is(err, errProcess) && (p == nil || fault.KindOf(err) != fault.Refused) {
		return nil // not about that: the pass will tell
	}
	return cannot("accept", r.File.Path, err)
}

var errProcess = errors.New("it leads through the proc file system, whose links lead anywhere")

// notProcess refuses what lies in procfs: nothing there can be declared, and
// its links (/proc/self/root) lead past every check (proc(5)).
func notProcess(fd int, name string) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	if st.Type == unix.PROC_SUPER_MAGIC {
		return fault.Refusedf("%q on its way: %w", name, errProcess)
	}
	return nil
}
