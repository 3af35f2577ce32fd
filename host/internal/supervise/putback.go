package supervise

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// backName is the temporary file beside name: none of the host's, which may be
// writing there at the same moment.
func backName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return ".nox-" + hex.EncodeToString(sum[:8]) + ".back"
}

// putBack gives the path the content of Good, in one rename, with owner, mode and
// attributes of what is there, which must be what failed.
func (s *shim) putBack(failed string) error {
	good, path := s.known.Good, s.def.Command[0]
	d, err := openWay(s.root, filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	name, temp := filepath.Base(path), backName(filepath.Base(path))
	there, err := openThere(d, name, failed)
	if err != nil {
		return err
	}
	defer there.close()
	if err := d.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := d.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(s.fill(f, good, there), f.Close())
	between("copied")
	if err == nil && there != nil {
		if fi, lerr := d.Lstat(name); lerr != nil || identityOf(fi) != there.id {
			err = errors.New("it changed meanwhile")
		}
	}
	if err == nil && there == nil {
		// What came meanwhile stays.
		if err = d.Link(temp, name); err == nil {
			err = d.Remove(temp)
		}
	} else if err == nil {
		err = d.Rename(temp, name)
	}
	if err != nil {
		_ = d.Remove(temp)
		return err
	}
	between("renamed")
	// From here on it is done. What cannot be written down now, the next start does.
	at, err := settled(d, name)
	if err == nil {
		err = s.learn(func(r *Rollback) { r.Returning, r.Put = "", &at })
	}
	if err != nil {
		s.known.Returning = failed
		s.out.say("cannot write down that the executable before it was put back: %v", err)
	}
	between("back")
	return nil
}

// openThere opens what is at the name; nil when there is nothing, which must be so
// when nothing failed.
func openThere(d *os.Root, name, failed string) (*executable, error) {
	fi, err := d.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && failed == absent {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := d.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	e := &executable{file: f, id: identityOf(fi)}
	st, ok := fi.Sys().(*syscall.Stat_t)
	now, err := f.Stat()
	if err == nil && (!ok || !now.Mode().IsRegular() || !os.SameFile(fi, now)) {
		err = errors.New("what is in its place is no regular file")
	}
	if err == nil {
		e.mode, e.uid, e.gid = st.Mode&0o7777, st.Uid, st.Gid
		if st.Nlink > 1 {
			e.close()
			return nil, errors.New("what is in its place has other names")
		}
		var digest string
		if digest, err = e.digest(); err == nil && digest != failed {
			err = errors.New("it changed meanwhile")
		}
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// fill makes f the executable that is put back, on the disk.
func (s *shim) fill(f *os.File, good *Good, there *executable) error {
	from, err := openExecutable(goodPath(s.dir, good.Digest))
	if err != nil {
		return err
	}
	defer from.close()
	got, err := from.copyTo(f)
	if err != nil {
		return err
	}
	if got != good.Digest {
		return errors.New("its copy is damaged")
	}
	mode, uid, gid := good.Mode, good.UID, good.GID
	if there != nil && there.mode&0o6000 != 0 && (there.mode != mode || there.uid != uid || there.gid != gid) {
		// Who made what is put back may have been another.
		return errors.New("what is in its place is setuid or setgid, and what was copied was not so")
	}
	if there != nil {
		mode, uid, gid = there.mode, there.uid, there.gid
	}
	// The owner first: chown(2) takes setuid and capabilities away.
	if int(uid) != os.Geteuid() || int(gid) != os.Getegid() {
		if err := f.Chown(int(uid), int(gid)); err != nil {
			return err
		}
	}
	if err := syscall.Fchmod(int(f.Fd()), mode); err != nil {
		return err
	}
	if there != nil {
		if err := copyAttributes(f, there.file); err != nil {
			return err
		}
	}
	return f.Sync()
}

// settled makes the rename durable, and says what the name is now.
func settled(d *os.Root, name string) (identity, error) {
	fi, err := d.Lstat(name)
	if err != nil {
		return identity{}, err
	}
	dir, err := d.Open(".")
	if err != nil {
		return identity{}, err
	}
	return identityOf(fi), errors.Join(dir.Sync(), dir.Close())
}
