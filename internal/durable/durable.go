// Package durable makes files that survive: after a call returns nil, the file
// is there, whole, with its owner and mode, also after a power cut; after an
// error or a kill at any instant the old file is there, whole.
//
// The order is always: a temporary file in the same directory, content, owner,
// mode, fsync, rename, fsync of the directory. Without the last a rename can be
// lost; without the one before it the file can come back present and empty.
//
// A temporary file's name follows from the final name (TempName), so whoever
// wrote an intent for a file can sweep what a crash left without searching.
//
// The directory may belong to somebody else, who swaps names while we are at
// work: owner and mode are set on what was made, never on what has its name by
// then.
package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Keep as an owner or group leaves it as the kernel gave it.
const Keep = -1

// Attr is who may do what with a file.
type Attr struct {
	// Mode is the permission bits with setuid, setgid and sticky, as in chmod(2).
	Mode uint32
	// UID and GID are numbers, or Keep.
	UID, GID int
}

// Perm returns the attributes of a file of the caller's own with that mode.
func Perm(mode uint32) Attr { return Attr{Mode: mode, UID: Keep, GID: Keep} }

// TempName is the name of the temporary file for name, in the same directory.
// It is short whatever the length of name, and starts with a dot.
func TempName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return ".nox-" + hex.EncodeToString(sum[:8]) + ".tmp"
}

// A Dir is an open directory; what happens in it cannot be led elsewhere by
// someone who replaces a parent by a symlink.
type Dir struct {
	fd   int
	name string
	// barrier is what makes things durable together with others, or nil.
	barrier *Barrier
}

// OpenDir opens the directory at path, following symlinks: for our own paths.
func OpenDir(path string) (*Dir, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Dir{fd: fd, name: path}, nil
}

// DirOf makes a Dir of an open directory (not O_PATH: it is fsynced), which it
// then owns. name is for errors.
func DirOf(fd int, name string) *Dir { return &Dir{fd: fd, name: name} }

// Share lets what is made in the directory wait at b with what others make;
// nil makes it durable alone.
func (d *Dir) Share(b *Barrier) { d.barrier = b }

// Close closes the directory.
func (d *Dir) Close() error { return unix.Close(d.fd) }

// FD returns the descriptor, for the *at calls; the Dir keeps owning it.
func (d *Dir) FD() int { return d.fd }

// Name returns the path the directory was opened by.
func (d *Dir) Name() string { return d.name }

// Sync makes the entries of the directory durable.
func (d *Dir) Sync() error {
	if d.barrier != nil {
		return d.barrier.wait(d.fd, d.name, true)
	}
	if err := unix.Fsync(d.fd); err != nil {
		return d.err("fsync", ".", err)
	}
	return nil
}

// sync makes the content of an open file in d durable.
func (d *Dir) sync(f *os.File) error {
	if d.barrier != nil {
		return d.barrier.wait(int(f.Fd()), f.Name(), false)
	}
	return f.Sync()
}

func (d *Dir) err(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: filepath.Join(d.name, name), Err: err}
}

// Create begins a new content for name. Nothing is visible under name until
// Commit.
func (d *Dir) Create(name string, attr Attr) (*Pending, error) {
	return d.createAs(name, TempName(name), attr)
}

func (d *Dir) createAs(name, temp string, attr Attr) (*Pending, error) {
	p := &Pending{dir: d, name: name, temp: temp, attr: attr}
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(d.fd, p.temp, flags, 0o600)
	if errors.Is(err, unix.EEXIST) {
		// Left by a crash of the one who writes here, which is only us.
		if err := d.clear(p.temp); err != nil {
			return nil, err
		}
		fd, err = unix.Openat(d.fd, p.temp, flags, 0o600)
	}
	if err != nil {
		return nil, d.err("create", name, err)
	}
	p.file = os.NewFile(uintptr(fd), filepath.Join(d.name, p.temp))
	return p, nil
}

// SetAttr gives the existing directory or file name the owner and mode of
// attr, without following a symlink, and makes it durable.
func (d *Dir) SetAttr(name string, attr Attr) error {
	fd, err := unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return d.err("open", name, err)
	}
	f := os.NewFile(uintptr(fd), filepath.Join(d.name, name))
	defer f.Close()
	if err := setAttr(f, attr); err != nil {
		return err
	}
	return d.sync(f)
}

// Remove removes the file or symlink name and makes that durable. A name that
// is not there is no error.
func (d *Dir) Remove(name string) error {
	if err := unix.Unlinkat(d.fd, name, 0); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return d.err("remove", name, err)
	}
	return d.Sync()
}

// Rmdir removes the empty directory name and makes that durable.
func (d *Dir) Rmdir(name string) error {
	if err := unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR); err != nil {
		return d.err("rmdir", name, err)
	}
	return d.Sync()
}

// Rename gives from the name to, in the same directory, and makes it durable.
func (d *Dir) Rename(from, to string) error {
	if err := unix.Renameat(d.fd, from, d.fd, to); err != nil {
		return d.err("rename", from, err)
	}
	return d.Sync()
}

// Sweep removes the temporary file a crash may have left for name.
func (d *Dir) Sweep(name string) error {
	err := unix.Unlinkat(d.fd, TempName(name), 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(d.fd, TempName(name), unix.AT_REMOVEDIR)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return d.err("remove", TempName(name), err)
	}
	return d.Sync()
}

// clear removes the temporary file temp, if there is one.
func (d *Dir) clear(temp string) error {
	err := unix.Unlinkat(d.fd, temp, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(d.fd, temp, unix.AT_REMOVEDIR)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return d.err("remove", temp, err)
	}
	return nil
}

// Pending is a file being written. Exactly one of Commit and Abort ends it;
// Abort after Commit does nothing, so it can be deferred.
type Pending struct {
	dir        *Dir
	name, temp string
	attr       Attr
	file       *os.File
}

// FD returns the descriptor of the new file, for what else it shall have; the
// Pending keeps owning it.
func (p *Pending) FD() int { return int(p.file.Fd()) }

// Write adds to the content.
func (p *Pending) Write(b []byte) (int, error) { return p.file.Write(b) }

// ReadFrom adds all of r to the content.
func (p *Pending) ReadFrom(r io.Reader) (int64, error) { return p.file.ReadFrom(r) }

// Commit puts the new content in place.
func (p *Pending) Commit() error {
	if p.file == nil {
		return fmt.Errorf("internal error: %q is committed twice", p.name)
	}
	if err := setAttr(p.file, p.attr); err != nil {
		p.Abort()
		return err
	}
	if err := p.dir.sync(p.file); err != nil {
		p.Abort()
		return err
	}
	err := p.file.Close()
	p.file = nil
	if err == nil {
		if rerr := unix.Renameat(p.dir.fd, p.temp, p.dir.fd, p.name); rerr != nil {
			err = p.dir.err("rename", p.name, rerr)
		}
	}
	if err != nil {
		_ = unix.Unlinkat(p.dir.fd, p.temp, 0)
		return err
	}
	return p.dir.Sync()
}

// Abort throws the new content away.
func (p *Pending) Abort() {
	if p.file == nil {
		return
	}
	_ = p.file.Close()
	p.file = nil
	_ = unix.Unlinkat(p.dir.fd, p.temp, 0)
}

// setAttr sets owner, then mode: chown(2) clears setuid and setgid.
func setAttr(f *os.File, attr Attr) error {
	if attr.UID != Keep || attr.GID != Keep {
		if err := f.Chown(attr.UID, attr.GID); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(int(f.Fd()), attr.Mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: f.Name(), Err: err}
	}
	return nil
}

// WriteFile makes the file at path, the caller's own, with content and mode.
func WriteFile(path string, content []byte, mode uint32) error {
	d, err := OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	p, err := d.Create(filepath.Base(path), Perm(mode))
	if err != nil {
		return err
	}
	defer p.Abort()
	if _, err := p.Write(content); err != nil {
		return err
	}
	return p.Commit()
}

// Remove removes the file at path, durably. One that is not there is no error.
func Remove(path string) error {
	d, err := OpenDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Remove(filepath.Base(path))
}

// Rename gives the file from the path to, which may be in another directory of
// the same file system, and makes both directories durable.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if err := SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	if filepath.Dir(from) == filepath.Dir(to) {
		return nil
	}
	return SyncDir(filepath.Dir(from))
}

// SyncDir makes the entries of the directory at path durable.
func SyncDir(path string) error {
	d, err := OpenDir(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// MkdirAll makes the directory at path and its parents, durably; each that is
// made has exactly mode. Directories that are there are left as they are.
func MkdirAll(path string, mode uint32) error {
	path = filepath.Clean(path)
	if fi, err := os.Stat(path); err == nil {
		if !fi.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: path, Err: unix.ENOTDIR}
		}
		return nil
	}
	parent := filepath.Dir(path)
	if err := MkdirAll(parent, mode); err != nil {
		return err
	}
	d, err := OpenDir(parent)
	if err != nil {
		return err
	}
	defer d.Close()
	// Several processes may be at it: each has a temporary name of its own, and
	// takes away those of the dead.
	if err := d.SweepDead(); err != nil {
		return err
	}
	temp := fmt.Sprintf(".nox-%d-%d.tmp", os.Getpid(), attempts.Add(1))
	err = d.mkdirAs(filepath.Base(path), temp, Perm(mode))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

var attempts atomic.Uint64

var attemptName = regexp.MustCompile(`^\.nox-([0-9]+)-[0-9]+\.tmp$`)

// SweepDead removes the temporary directories of MkdirAll that processes left
// which are no more. One whose number another process has by now stays until
// that one is gone as well.
func (d *Dir) SweepDead() error {
	entries, err := os.ReadDir(d.name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		m := attemptName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		pid, err := strconv.Atoi(m[1])
		if err != nil || pid == os.Getpid() || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		if err := d.clear(e.Name()); err != nil {
			return err
		}
	}
	return nil
}
