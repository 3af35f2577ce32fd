package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// Review refuses a container in which the host's own would be seen, by whatever
// path it is mounted.
func (k *Kind) Review(r declaration.Resource) error {
	if r.Container == nil {
		return nil
	}
	return k.review(r.Container)
}

// review compares what is mounted with what is the host's own, by where a path
// leads and by device and inode: a bind mount shows the state under any name.
func (k *Kind) review(c *declaration.Container) error {
	own := layout.OwnPaths(k.Layout.Prefixes()...)
	for i, m := range c.Mounts {
		if m.Path == "" {
			continue
		}
		what, err := k.reaches(m, own)
		if err != nil {
			return fmt.Errorf("mounts[%d].path: cannot tell where %q leads: %w", i, m.Path, err)
		}
		if what != "" {
			return fault.Refusedf("mounts[%d].path: %q leads to the host's own: %s", i, m.Path, what)
		}
	}
	if c.EnvFrom == "" {
		return nil
	}
	what, err := k.reaches(declaration.Mount{Path: c.EnvFrom, ReadOnly: true}, own)
	if err != nil {
		return fmt.Errorf("env_from: cannot tell where %q leads: %w", c.EnvFrom, err)
	}
	if what != "" {
		return fault.Refusedf("env_from: %q leads to the host's own: %s", c.EnvFrom, what)
	}
	return nil
}

// reaches says what of the host's own a mount shows, or "".
func (k *Kind) reaches(m declaration.Mount, own []layout.Own) (string, error) {
	w, err := k.where(m.Path, own)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // the runtime says so, too, and nothing is shown
	}
	if err != nil {
		return "", err
	}
	for _, s := range w.spellings {
		m.Path = s
		if what := m.Own(own); what != "" {
			return what, nil
		}
	}
	// Whoever connects to a socket writes nothing to its file system.
	if _, shown := w.shows(path.Dir(layout.Layout{}.HostSocket())); shown {
		return "through its socket whoever is root in the container commands the host; mount what is needed of it", nil
	}
	return "", nil
}

// A place is where a path of the machine leads.
type place struct {
	real  string
	mount uint64
	// spellings are the paths of the machine that lead there.
	spellings []string
}

func (k *Kind) where(p string, own []layout.Own) (*place, error) {
	f, err := k.open(p, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w := &place{}
	if w.real, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err != nil {
		return nil, err
	}
	if w.mount, err = mountOf(w.real); err != nil {
		return nil, err
	}
	w.spellings, err = k.spellings(f, w.real, own)
	return w, err
}

// shows reports where below it the machine's path p is seen, in what is mounted
// without what is mounted below: as a path that begins at it. Where p would be seen
// if it was there counts as well.
func (w *place) shows(p string) (rel string, shown bool) {
	for _, s := range w.spellings {
		rel, err := filepath.Rel(s, p)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		at := filepath.Join(w.real, rel)
		mount, err := mountOf(at)
		for errors.Is(err, fs.ErrNotExist) && at != w.real {
			at = filepath.Dir(at)
			mount, err = mountOf(at)
		}
		if err != nil || mount == w.mount {
			return rel, true
		}
	}
	return "", false
}

// mountOf is the number of the mount a file is on; 0, for all, where the kernel does
// not tell (before Linux 5.8; statx(2), STATX_MNT_ID).
func mountOf(file string) (uint64, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, file, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_MNT_ID, &st)
	if err != nil {
		return 0, &fs.PathError{Op: "statx", Path: file, Err: err}
	}
	return st.Mnt_id, nil
}

// sources refuses what is not there: a runtime may make a directory of it, which
// nobody declared.
func (k *Kind) sources(c *declaration.Container) error {
	for i, m := range c.Mounts {
		if m.Path == "" {
			continue
		}
		f, err := k.open(m.Path, unix.O_PATH)
		if err != nil {
			return fmt.Errorf("mounts[%d].path: cannot open %q: %w", i, m.Path, err)
		}
		f.Close()
	}
	return nil
}

// spellings are the paths of the machine by which the host knows what is open:
// where it really is, and, when a directory on its way is also one of those the
// host's own lies in, that one's.
func (k *Kind) spellings(f *os.File, real string, own []layout.Own) ([]string, error) {
	rel, err := filepath.Rel(k.Layout.Path("/"), real)
	if err != nil {
		return nil, err
	}
	here := path.Join("/", rel)
	out := []string{here}
	marks := k.landmarks(own)
	rest := ""
	for at := real; ; at = filepath.Dir(at) {
		fi, err := os.Lstat(at)
		if err != nil {
			return nil, err
		}
		if at == real {
			if fi, err = f.Stat(); err != nil {
				return nil, err
			}
		}
		for p, mark := range marks {
			if os.SameFile(fi, mark) {
				out = append(out, path.Join(p, rest))
			}
		}
		if at == k.Layout.Path("/") || at == "/" {
			return out, nil
		}
		rest = path.Join(filepath.Base(at), rest)
	}
}

// landmarks are the directories that the host's own lies in, it itself, and what
// is in it but for the blobs of the content store, by the paths of the machine.
func (k *Kind) landmarks(own []layout.Own) map[string]os.FileInfo {
	out := map[string]os.FileInfo{}
	for _, o := range own {
		for p := path.Dir(o.Path); p != "/"; p = path.Dir(p) {
			if fi, err := os.Stat(k.Layout.Path(p)); err == nil {
				out[p] = fi
			}
		}
		_ = filepath.WalkDir(k.Layout.Path(o.Path), func(really string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // what cannot be seen by us cannot be shown either
			}
			fi, err := d.Info()
			rel, rerr := filepath.Rel(k.Layout.Path(o.Path), really)
			if err != nil || rerr != nil {
				return nil
			}
			out[path.Join(o.Path, rel)] = fi
			if d.IsDir() && d.Name() == "blobs" {
				return fs.SkipDir
			}
			return nil
		})
	}
	return out
}

// leadsToOwn reports whether the host's own lies below what is mounted, which is
// allowed to be seen and not to be written, and the folders in it that are not to be
// seen either: there lie the identity of the node and the keys of its mesh.
func (k *Kind) leadsToOwn(m declaration.Mount) (leads bool, secret []string, err error) {
	if m.Path == "" || !m.ReadOnly {
		return false, nil, nil
	}
	own := layout.OwnPaths(k.Layout.Prefixes()...)
	w, err := k.where(m.Path, own)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	for _, s := range w.spellings {
		writable := declaration.Mount{Path: s}
		leads = leads || writable.Own(own) != ""
	}
	for _, dir := range []string{layout.Layout{}.State(), layout.Layout{}.ControllerState()} {
		if _, err := os.Lstat(k.Layout.Path(dir)); errors.Is(err, fs.ErrNotExist) {
			continue // nothing can be laid over it
		}
		if rel, shown := w.shows(dir); shown {
			secret = append(secret, rel)
		}
	}
	return leads, secret, nil
}

// cover is an empty folder, which is laid over what is not to be seen. Memory would
// not do: podman fills it with what it hides.
func (k *Kind) cover() string { return filepath.Join(k.Layout.State(), "empty") }
