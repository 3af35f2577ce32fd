package unit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// folder opens the directory that a path lies in. A folder NAME.d that is a
// symlink leads nobody; one that is missing is made, or is fs.ErrNotExist.
func (k *Kind) folder(file string, make bool) (*durable.Dir, error) {
	dir := path.Dir(file)
	base := dir
	if strings.HasSuffix(dir, ".d") {
		base = path.Dir(dir)
	}
	if make {
		if err := durable.MkdirAll(k.Layout.Path(base), 0o755); err != nil {
			return nil, err
		}
	}
	d, err := durable.OpenDir(k.Layout.Path(base))
	if err != nil || base == dir {
		return d, err
	}
	defer d.Close()
	name := path.Base(dir)
	fd, err := openFolder(d, name)
	if make && errors.Is(err, fs.ErrNotExist) {
		if err := d.Mkdir(name, durable.Perm(0o755)); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		fd, err = openFolder(d, name)
	}
	if err != nil {
		return nil, err
	}
	return durable.DirOf(fd, filepath.Join(d.Name(), name)), nil
}

func openFolder(d *durable.Dir, name string) (int, error) {
	fd, err := unix.Openat(d.FD(), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return -1, fault.Refusedf("%q is no directory, and what it may lead to is somebody else's", filepath.Join(d.Name(), name)).
			Hint("move it away by hand")
	case err != nil:
		return -1, &fs.PathError{Op: "open", Path: filepath.Join(d.Name(), name), Err: err}
	}
	return fd, nil
}

// read says what is at a path.
func (k *Kind) read(file string) (thing, error) {
	d, err := k.folder(file, false)
	if errors.Is(err, fs.ErrNotExist) {
		return thing{}, nil
	}
	if err != nil {
		return thing{}, err
	}
	defer d.Close()
	return readIn(d, path.Base(file))
}

func readIn(d *durable.Dir, name string) (thing, error) {
	var st unix.Stat_t
	err := unix.Fstatat(d.FD(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return thing{}, nil
	}
	if err != nil {
		return thing{}, &fs.PathError{Op: "stat", Path: filepath.Join(d.Name(), name), Err: err}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		b := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(d.FD(), name, b)
		if err != nil {
			return thing{}, &fs.PathError{Op: "readlink", Path: filepath.Join(d.Name(), name), Err: err}
		}
		return thing{Kind: "symlink", Target: string(b[:n])}, nil
	case unix.S_IFREG:
		return readFile(d, name)
	}
	return thing{Kind: "other"}, nil
}

func readFile(d *durable.Dir, name string) (thing, error) {
	fd, err := unix.Openat(d.FD(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return thing{}, &fs.PathError{Op: "open", Path: filepath.Join(d.Name(), name), Err: err}
	}
	f := os.NewFile(uintptr(fd), filepath.Join(d.Name(), name))
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return thing{}, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return thing{}, err
	}
	if len(b) > maxText || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return thing{Kind: "other"}, nil
	}
	return thing{Kind: "file", Text: b, Mode: st.Mode & 0o7777, owner: st.Uid}, nil
}

// put makes the path as it was, or as wished: t is a file or a symlink.
func (k *Kind) put(file string, t thing) error {
	d, err := k.folder(file, true)
	if err != nil {
		return err
	}
	defer d.Close()
	if t.Kind == "symlink" {
		return d.Symlink(path.Base(file), t.Target, durable.Perm(0))
	}
	attr := durable.Perm(t.Mode)
	if os.Geteuid() == 0 {
		attr.UID, attr.GID = 0, 0
	}
	p, err := d.Create(path.Base(file), attr)
	if err != nil {
		return err
	}
	defer p.Abort()
	if _, err := p.Write(t.Text); err != nil {
		return err
	}
	return p.Commit()
}

// fulfil makes the path as wished.
func (k *Kind) fulfil(file string, w wish) error {
	if w.mask {
		return k.put(file, thing{Kind: "symlink", Target: null})
	}
	text, err := k.textOf(w)
	if err != nil {
		return err
	}
	return k.put(file, thing{Kind: "file", Text: []byte(text), Mode: fileMode})
}

// textOf is the wished text, which is not the host's own business.
func (k *Kind) textOf(w wish) (string, error) {
	if w.text != nil {
		return *w.text, nil
	}
	b, err := k.Content.Read(w.digest, maxText)
	if err != nil {
		return "", err
	}
	if why := declaration.OwnInUnit(string(b)); why != "" {
		return "", fault.Refusedf(itsContent+"%s", why)
	}
	return string(b), nil
}

// remove takes away what is at a path, and the folder NAME.d when that is empty
// then.
func (k *Kind) remove(file string, folder bool) error {
	d, err := k.folder(file, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Remove(path.Base(file)); err != nil {
		return err
	}
	if !folder {
		return nil
	}
	return k.removeFolder(path.Dir(file))
}

// removeFolder removes a folder NAME.d, if it is empty.
func (k *Kind) removeFolder(dir string) error {
	d, err := durable.OpenDir(k.Layout.Path(path.Dir(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Rmdir(path.Base(dir))
	for _, fine := range []error{unix.ENOENT, unix.ENOTEMPTY, unix.EEXIST, unix.ENOTDIR} {
		if errors.Is(err, fine) {
			return nil
		}
	}
	return err
}

// list returns the names in an open directory.
func list(d *durable.Dir) ([]string, error) {
	fd, err := unix.Openat(d.FD(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.Name(), Err: err}
	}
	f := os.NewFile(uintptr(fd), d.Name())
	defer f.Close()
	return f.Readdirnames(-1)
}

const (
	// saved ends the name of what is kept.
	saved = ".nox-saved"
	// maxSaved bounds the search for a free name.
	maxSaved = 100
)

// aside renames what is at a path to NAME.nox-saved, or the next name that is
// free, which systemd does not read, and returns the new path.
func (k *Kind) aside(file string) (string, error) {
	d, err := k.folder(file, false)
	if err != nil {
		return "", err
	}
	defer d.Close()
	name := path.Base(file)
	for i := range maxSaved {
		end := saved
		if i > 0 {
			end = fmt.Sprintf("%s.%d", end, i)
		}
		to := name[:min(len(name), unix.NAME_MAX-len(end))] + end
		err := unix.Renameat2(d.FD(), name, d.FD(), to, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return "", &fs.PathError{Op: "rename", Path: file, Err: err}
		}
		return path.Join(path.Dir(file), to), d.Sync()
	}
	return "", fmt.Errorf("%q cannot be kept: %d files are kept beside it already", file, maxSaved)
}
