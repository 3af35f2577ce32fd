package apply

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// checkOwn refuses a declaration that reaches something of the host's own by a
// detour that only the machine shows: a symlink on the way, or a hard link.
// (declaration.Parse has refused the plain spellings.)
func (e *Engine) checkOwn(d *declaration.Declaration) error {
	own := e.ownFiles()
	for i := range d.Resources {
		r := &d.Resources[i]
		if r.File == nil {
			continue
		}
		real, err := e.resolve(r.File.Path)
		if err != nil {
			continue // the file kind says what is wrong with the path
		}
		what := declaration.OwnPath(real)
		for _, prefix := range e.Layout.Prefixes() {
			if strings.HasPrefix(real, path.Join(prefix, "share/nox-mesh/trust")+"/") {
				what = "the host's own trust"
			}
		}
		if fi, err := os.Lstat(e.Layout.Path(real)); what == "" && err == nil {
			for _, o := range own {
				if os.SameFile(fi, o) {
					what = "a hard link to the host's own " + o.Name()
				}
			}
		}
		if what != "" {
			return fault.Refusedf("resources[%d].path: %q leads to %q, %s, which the installation owns and no declaration may name",
				i, r.File.Path, real, what)
		}
	}
	return nil
}

// ownFiles are the files of the host that a hard link could be to. (The binary
// is not among them: it may be declared.)
func (e *Engine) ownFiles() []os.FileInfo {
	var out []os.FileInfo
	l := e.Layout
	for _, p := range []string{l.HostStore(), l.HostIdentity(), l.HostConfig(), filepath.Join(l.UnitDir(), layout.HostUnit)} {
		if fi, err := os.Stat(p); err == nil {
			out = append(out, fi)
		}
	}
	return out
}

// resolve follows the symlinks in the parents of a machine's path, within the
// layout's root. Parents that are not there stay as they are written.
func (e *Engine) resolve(p string) (string, error) {
	root, err := unix.Open(e.Layout.Path("/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(root)
	rootPath, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", root))
	if err != nil {
		return "", err
	}
	for dir, rest := path.Dir(p), path.Base(p); ; dir, rest = path.Dir(dir), path.Join(path.Base(dir), rest) {
		fd, err := unix.Openat2(root, strings.TrimPrefix(dir, "/"), &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
		})
		if dir == "/" {
			return path.Join("/", rest), nil
		}
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return "", err
		}
		real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		unix.Close(fd)
		if err != nil {
			return "", err
		}
		if rootPath != "/" {
			real = strings.TrimPrefix(real, rootPath)
		}
		return path.Join("/", real, rest), nil
	}
}
