package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// reviewer is what a kind implements that can tell before anything is touched
// that it would refuse the resource, for being the host's own.
type reviewer interface {
	Review(declaration.Resource) error
}

// ownOf refuses what of a declaration reaches something of the host's own by a
// detour that only the machine shows: a symlink on the way, one of the same
// declaration's too, a hard link, or what the kind sees, which names the member
// itself where there may be several. It does so for each resource by its index, of
// which several may be checked at once. (declaration.Parse has refused the plain
// spellings. What cannot be told now, or comes to be between now and the pass, the
// kind refuses then: one path that leads nowhere, on a server that is gone or in a
// folder of somebody's, must not keep the rest of a declaration from being applied.)
func (e *Engine) ownOf(d *declaration.Declaration) func(i int) error {
	own := layout.OwnPaths(e.Layout.Prefixes()...)
	way, files, kinds := e.wayOf(d), e.ownFiles(), e.Surveyed()
	way.known = &sync.Map{} // thousands of files may be in a few directories
	var places sync.Map     // which resource names the file that is really there
	return func(i int) error {
		r := &d.Resources[i]
		here := fmt.Sprintf("resources[%d]", i)
		var err error
		switch {
		case r.File != nil:
			var real string
			if real, err = e.checkOwnFile(r.File, own, way, files); real == "" || err != nil {
				break
			}
			if first, taken := places.LoadOrStore(real, i); taken && first != i {
				// Both would be applied, pass for pass, in turn.
				err = fmt.Errorf("path: %q leads to %q, as the path of resources[%d] does", r.File.Path, real, first)
			}
		case r.Container != nil:
			err = checkOwnContainer(r.Container, own, way)
		}
		if err != nil {
			return fault.Refusedf("%s.%w", here, err)
		}
		k, ok := kinds[r.Type].(reviewer)
		if !ok {
			return nil
		}
		switch err := k.Review(*r); {
		case fault.KindOf(err) != fault.Refused:
			return nil
		case r.File != nil:
			return fault.Refusedf("%s.path: %w", here, err)
		default:
			return fault.Refusedf("%s: %w", here, err)
		}
	}
}

// checkOwnFile names the member of a file that reaches what is the host's own. real is
// where its path leads, or "" when that cannot be told.
func (e *Engine) checkOwnFile(file *declaration.File, own []layout.Own, way way, files []fs.FileInfo) (real string, err error) {
	real, err = way.place(file.Path)
	if leadsAstray(err) {
		return "", fmt.Errorf("path: cannot tell where %q leads: %w", file.Path, err)
	}
	if err != nil {
		return "", nil
	}
	f := *file
	f.Path = real
	if member, why := f.Own(own); why != "" {
		return "", fmt.Errorf("%s: %q leads to %q: %s", member, file.Path, real, why)
	}
	if f.Target != "" {
		if err := way.target(&f, own); err != nil {
			return "", fmt.Errorf("target: %w", err)
		}
	}
	if name := e.hardLink(real, files); name != "" {
		return "", fmt.Errorf("path: %q is a hard link to the host's own %s, which the installation owns and no declaration may name",
			file.Path, name)
	}
	return real, nil
}

// checkOwnContainer names the member of a container by which the host's own
// would be seen in it.
func checkOwnContainer(c *declaration.Container, own []layout.Own, way way) error {
	for i, m := range c.Mounts {
		if m.Path == "" {
			continue
		}
		real, err := way.follow(m.Path)
		if leadsAstray(err) {
			return fmt.Errorf("mounts[%d].path: cannot tell where %q leads: %w", i, m.Path, err)
		}
		if err != nil {
			continue
		}
		from := m.Path
		m.Path = real
		if why := m.Own(own); why != "" {
			return fmt.Errorf("mounts[%d].path: %q leads to %q: %s", i, from, real, why)
		}
	}
	if c.EnvFrom == "" {
		return nil
	}
	real, err := way.follow(c.EnvFrom)
	if leadsAstray(err) {
		return fmt.Errorf("env_from: cannot tell where %q leads: %w", c.EnvFrom, err)
	}
	if err != nil {
		return nil
	}
	if why := (&declaration.Mount{Path: real, ReadOnly: true}).Own(own); why != "" {
		return fmt.Errorf("env_from: %q leads to %q: %s", c.EnvFrom, real, why)
	}
	return nil
}

// ownFiles are the files of the host that a hard link could be to.
func (e *Engine) ownFiles() []fs.FileInfo {
	var out []fs.FileInfo
	for _, name := range e.Layout.OwnFiles() {
		if fi, err := os.Stat(name); err == nil {
			out = append(out, fi)
		}
	}
	return out
}

// hardLink names the file of the host that the one at the path is, or "".
func (e *Engine) hardLink(p string, files []fs.FileInfo) string {
	fi, err := os.Lstat(e.Layout.Path(p))
	if err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	for _, own := range files {
		if os.SameFile(fi, own) {
			return own.Name()
		}
	}
	return ""
}

// isBinary reports whether the machine's path p is the host's binary by another
// name: through a symlink on the way ("/bin/mesh-host"), or a hard link.
func (e *Engine) isBinary(p string) bool {
	real, err := way{layout: e.Layout}.place(p)
	if err != nil {
		return false
	}
	fi, err := os.Lstat(e.Layout.Path(real))
	if err != nil || !fi.Mode().IsRegular() {
		return false
	}
	binaries := []string{"/proc/self/exe"}
	for _, prefix := range e.Layout.Prefixes() {
		binaries = append(binaries, e.Layout.HostBinary(prefix))
	}
	for _, b := range binaries {
		if o, err := os.Stat(b); err == nil && os.SameFile(fi, o) {
			return true
		}
	}
	return false
}

// A way knows the symlinks of the machine, and those that a declaration will
// have made by the time a path is gone.
type way struct {
	layout layout.Layout
	// links are the declared ones, by their paths.
	links map[string]string
	// known are directories, and where they led a moment ago, both strings; nil when
	// each is looked at anew.
	known *sync.Map
}

// maxLinks is how many symlinks one path may lead through (path_resolution(7)).
const maxLinks = 40

func (e *Engine) wayOf(d *declaration.Declaration) way {
	w := way{layout: e.Layout, links: map[string]string{}}
	for i := range d.Resources {
		if f := d.Resources[i].File; f != nil && f.Target != "" {
			w.links[f.Path] = f.Target
		}
	}
	// One may be declared by a path that another one leads through.
	for range maxLinks {
		before := len(w.links)
		for i := range d.Resources {
			if f := d.Resources[i].File; f != nil && f.Target != "" {
				if real, err := w.place(f.Path); err == nil {
					w.links[real] = f.Target
				}
			}
		}
		if len(w.links) == before {
			break
		}
	}
	return w
}

// place follows the symlinks on the way to the name at the end of p.
func (w way) place(p string) (string, error) {
	if w.known != nil {
		if dir, ok := w.known.Load(path.Dir(p)); ok {
			return path.Join(dir.(string), path.Base(p)), nil
		}
	}
	dir, err := w.follow(path.Dir(p))
	if err != nil {
		return "", err
	}
	if w.known != nil {
		w.known.Store(path.Dir(p), dir)
	}
	return path.Join(dir, path.Base(p)), nil
}

// target refuses a symlink that leads to the host's own in the end, or one of
// systemd's out of its directories. One that leads nowhere that can be told
// leads nobody; in systemd's directories it must be known.
func (w way) target(f *declaration.File, own []layout.Own) error {
	to := f.Target
	if !path.IsAbs(to) {
		to = path.Dir(f.Path) + "/" + to // not cleaned: a ".." counts from where a link led
	}
	to, err := w.follow(to)
	if err != nil && f.InUnitDir() {
		return fmt.Errorf("cannot tell where %q leads: %w", f.Target, err)
	}
	if err != nil {
		return nil
	}
	end := *f
	end.Target = to
	if _, why := end.Own(own); why != "" {
		return fmt.Errorf("%q leads to %q: %s", f.Target, to, why)
	}
	return nil
}

// follow follows all symlinks of a machine's path, within the layout's root.
// What is not there stays as it is written.
func (w way) follow(p string) (string, error) {
	here, todo, followed, ours := "/", strings.Split(p, "/"), 0, false
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		next := path.Join(here, name) // ".." ends at the root
		target, declared := w.links[next]
		if !declared && name != "" && name != "." && name != ".." {
			var err error
			if target, err = w.readlink(next); err != nil {
				return "", err
			}
		}
		if target == "" {
			here = next
			continue
		}
		ours = ours || declared
		if followed++; followed > maxLinks && ours {
			return "", fmt.Errorf("%q is %w", next, errCircle)
		} else if followed > maxLinks {
			return "", fmt.Errorf("%q: %w", next, unix.ELOOP)
		}
		if path.IsAbs(target) {
			here = "/"
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return here, nil
}

// What these say is no matter of the moment.
var (
	errAnywhere = errors.New("a link of the proc file system, which leads anywhere")
	errCircle   = errors.New("in a circle of declared symlinks")
)

func leadsAstray(err error) bool { return errors.Is(err, errAnywhere) || errors.Is(err, errCircle) }

// readlink returns the target of the symlink at the machine's path p, or "".
func (w way) readlink(p string) (string, error) {
	really := w.layout.Path(p)
	fi, err := os.Lstat(really)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return "", nil
	}
	if err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return "", err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(really), &st); err != nil {
		return "", err
	}
	if st.Type == unix.PROC_SUPER_MAGIC {
		return "", fmt.Errorf("%q is %w", p, errAnywhere)
	}
	return os.Readlink(really)
}
