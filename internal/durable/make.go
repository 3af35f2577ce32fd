package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// errSwapped says that what we made under a temporary name was another thing a
// moment later: somebody who may write in the directory is at it.
var errSwapped = errors.New("somebody put another thing in its place while it was made")

// meanwhile is called between making a thing and opening it: where a test
// stands in for who swaps names.
var meanwhile = func(temp string) {}

// Symlink makes name a symlink to target, replacing what is there unless that
// is a directory.
func (d *Dir) Symlink(name, target string, attr Attr) error {
	temp := TempName(name)
	if err := d.clear(temp); err != nil {
		return err
	}
	if err := unix.Symlinkat(target, d.fd, temp); err != nil {
		return d.err("symlink", name, err)
	}
	if attr.UID != Keep || attr.GID != Keep {
		meanwhile(temp)
		if err := d.ownSymlink(temp, name, target, attr); err != nil {
			_ = d.clear(temp)
			return err
		}
	}
	if err := unix.Renameat(d.fd, temp, d.fd, name); err != nil {
		_ = d.clear(temp)
		return d.err("rename", name, err)
	}
	return d.Sync()
}

// ownSymlink gives the fresh symlink temp its owner.
func (d *Dir) ownSymlink(temp, name, target string, attr Attr) error {
	fd, err := unix.Openat(d.fd, temp, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return d.err("open", name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return d.err("stat", name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK || !fresh(&st) || st.Nlink != 1 {
		return d.err("symlink", name, errSwapped)
	}
	b := make([]byte, len(target)+1)
	if n, err := unix.Readlinkat(fd, "", b); err != nil || string(b[:n]) != target {
		return d.err("symlink", name, errSwapped)
	}
	if err := unix.Fchownat(fd, "", attr.UID, attr.GID, unix.AT_EMPTY_PATH); err != nil {
		return d.err("chown", name, err)
	}
	return nil
}

// Mkdir makes the directory name with exactly attr, whatever the umask. It is
// there with them or not at all; what is there already is an error (EEXIST).
func (d *Dir) Mkdir(name string, attr Attr) error {
	temp := TempName(name)
	if err := d.clear(temp); err != nil {
		return err
	}
	return d.mkdirAs(name, temp, attr)
}

func (d *Dir) mkdirAs(name, temp string, attr Attr) error {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil {
		return d.err("mkdir", name, unix.EEXIST)
	}
	if err := unix.Mkdirat(d.fd, temp, 0o700); err != nil {
		return d.err("mkdir", name, err)
	}
	meanwhile(temp)
	err := d.setFresh(temp, name, attr)
	if err == nil {
		err = d.renameFresh(temp, name)
	}
	if err != nil {
		_ = unix.Unlinkat(d.fd, temp, unix.AT_REMOVEDIR)
		return err
	}
	return d.Sync()
}

// setFresh gives the fresh directory temp its attributes.
func (d *Dir) setFresh(temp, name string, attr Attr) error {
	fd, err := unix.Openat(d.fd, temp, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = errSwapped
	}
	if err != nil {
		return d.err("mkdir", name, err)
	}
	f := os.NewFile(uintptr(fd), filepath.Join(d.name, temp))
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return d.err("stat", name, err)
	}
	// One with something in it was not made just now, and would be opened to
	// whoever put it here.
	if _, err := f.Readdirnames(1); !fresh(&st) || !errors.Is(err, io.EOF) {
		return d.err("mkdir", name, errSwapped)
	}
	if err := setAttr(f, attr); err != nil {
		return err
	}
	return d.sync(f)
}

// renameFresh gives the directory temp its name, unless there is a thing of
// that name. Where the file system cannot do that in one (rename(2): EINVAL),
// rename(2) itself leaves everything alone but an empty directory.
func (d *Dir) renameFresh(temp, name string) error {
	err := unix.Renameat2(d.fd, temp, d.fd, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		err = unix.Renameat(d.fd, temp, d.fd, name)
	}
	if err != nil {
		return d.err("mkdir", name, err)
	}
	return nil
}

// fresh reports whether the thing is ours, as one is that we made just now.
func fresh(st *unix.Stat_t) bool { return st.Uid == uint32(unix.Geteuid()) }
