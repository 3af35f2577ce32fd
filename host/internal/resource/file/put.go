package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// put makes the place as wished. have is what is there.
func (k *Kind) put(ctx context.Context, p *place, have thing, w *wish) error {
	switch w.Kind {
	case file:
		return k.putFile(ctx, p, have, w)
	case symlink:
		if err := p.unchanged(have); err != nil {
			return err
		}
		return p.dir.Symlink(p.name, w.Target, w.attr())
	default:
		if have.Kind == nothing {
			return p.dir.Mkdir(p.name, w.attr())
		}
		return k.setDirectory(p, have, w.attr())
	}
}

// putFile writes the file anew, also when only its mode or owner is not as
// wished: changing them in place would reach every other name of the inode, and
// whoever may write in the directory can make it one of a file that is not his.
//
// The order matters. The owner is set when the content is in: nobody but us can
// write to a file that may become setgid. An ACL is copied first and shut by
// chmod(2), and the rest of the attributes last: every write and chown takes
// the capabilities away (capabilities(7)).
func (k *Kind) putFile(ctx context.Context, p *place, have thing, w *wish) error {
	src, err := k.source(w)
	if err != nil {
		return err
	}
	defer src.Close()
	kept, err := k.keptAttributes(p, have, w)
	if err != nil {
		return err
	}
	attr := w.attr()
	if len(kept) > 0 {
		attr.UID, attr.GID = durable.Keep, durable.Keep
	}
	temp, err := p.dir.Create(p.name, attr)
	if err != nil {
		return err
	}
	defer temp.Abort()
	x := &attributes{temp.FD(), kept}
	if err := x.setACL(); err != nil {
		return err
	}
	got, err := copyHashed(ctx, temp, src, math.MaxInt64)
	if err != nil {
		return err
	}
	if got != w.Digest {
		return k.damaged(w, got)
	}
	if err := x.setRest(w.uid, w.gid); err != nil {
		return err
	}
	if err := keepsMode(temp.FD(), w.Mode); err != nil {
		return err
	}
	if err := p.unchanged(have); err != nil {
		return err
	}
	return temp.Commit()
}

// keepsMode returns an error when the new file, which was made for its owner alone,
// is on a file system that has no modes and cannot have the wished one. A vfat takes
// chmod(2) for one it cannot keep, and says nothing.
func keepsMode(fd int, mode uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&0o077 == 0 {
		return err
	}
	err := unix.Fchmod(fd, mode&0o777)
	if err == nil {
		if err = unix.Fstat(fd, &st); err == nil && st.Mode&0o777 != mode&0o777 {
			err = unix.EPERM
		}
	}
	if err != nil {
		return &fs.PathError{Op: "chmod", Err: err}
	}
	return nil
}

// source opens the wished content, which is hashed while it is copied.
func (k *Kind) source(w *wish) (io.ReadCloser, error) {
	if w.file.Content != nil {
		return io.NopCloser(strings.NewReader(*w.file.Content)), nil
	}
	f, err := k.content.Open(w.file.Source)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Failedf("its content %s is not in the content store", w.file.Source).
			Hint("%s", w.remedy)
	}
	if err != nil {
		return nil, fmt.Errorf("its content %s cannot be read: %w", w.file.Source, err)
	}
	return f, nil
}

// damaged throws away the content that is not what its digest says, and says so.
func (k *Kind) damaged(w *wish, got digest.Digest) error {
	if w.file.Content == nil {
		if err := k.content.Drop(w.file.Source); err != nil {
			return fmt.Errorf("its content in the content store is damaged (it has the digest %s, want %s) and cannot be thrown away: %w", got, w.Digest, err)
		}
	}
	return fault.Failedf("its content in the content store was damaged and is thrown away, to be fetched again: it had the digest %s, want %s", got, w.Digest).
		Hint("%s", w.remedy)
}

// setDirectory sets owner and mode of the directory at the place, which have is. In between,
// what either forbids is forbidden.
func (k *Kind) setDirectory(p *place, have thing, attr durable.Attr) error {
	d, err := openBelow(p.dir, p.name)
	if err != nil {
		return err
	}
	defer d.Close()
	d.Share(k.barrier)
	var st unix.Stat_t
	if err := unix.Fstat(d.FD(), &st); err != nil {
		return err
	}
	if st.Dev != have.stat.Dev || st.Ino != have.stat.Ino {
		return errMoved
	}
	if attr.UID != durable.Keep && (st.Uid != uint32(attr.UID) || st.Gid != uint32(attr.GID)) {
		if err := unix.Fchmod(d.FD(), st.Mode&attr.Mode&0o7777); err != nil {
			return &fs.PathError{Op: "chmod", Path: p.path, Err: err}
		}
		if err := unix.Fchown(d.FD(), attr.UID, attr.GID); err != nil {
			return &fs.PathError{Op: "chown", Path: p.path, Err: err}
		}
	}
	if err := unix.Fchmod(d.FD(), attr.Mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: p.path, Err: err}
	}
	return d.Sync()
}

// openBelow opens the directory name in d, and nothing a symlink leads to.
func openBelow(d *durable.Dir, name string) (*durable.Dir, error) {
	fd, err := unix.Openat(d.FD(), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return durable.DirOf(fd, filepath.Join(d.Name(), name)), nil
}

func isExist(err error) bool    { return errors.Is(err, fs.ErrExist) }
func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
