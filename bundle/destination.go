package bundle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A destination is where a bundle is being written: a file that is not there yet,
// is empty, or is a bundle. Anything else is somebody's, and left. A bundle is
// replaced with its owner and mode; a symlink is followed to what it leads to.
type destination struct {
	*durable.Pending
	dir *durable.Dir
	// temp is the path of what is being written.
	temp string
}

func openDestination(path string) (*destination, error) {
	if strings.HasSuffix(path, "/") {
		return nil, fault.Usagef("%q names a directory", path).Hint("give the name of the file")
	}
	path, attr, err := replaceable(path)
	if err != nil {
		return nil, err
	}
	d := &destination{}
	if d.dir, err = durable.OpenDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	base := filepath.Base(path)
	d.temp = filepath.Join(d.dir.Name(), durable.TempName(base))
	err = d.free(path)
	if err == nil {
		d.Pending, err = d.dir.Create(base, attr)
	}
	if err == nil {
		// For as long as the file is open nobody else takes its name.
		if err = unix.Flock(d.FD(), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			d.Abort()
		}
	}
	if err != nil {
		_ = d.dir.Close()
		return nil, err
	}
	return d, nil
}

// free refuses a name that another process is writing to: what a dead one left is
// taken over.
func (d *destination) free(path string) error {
	f, err := os.OpenFile(d.temp, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil // none is there, or Create will say what is wrong
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return fault.Failedf("another program is writing %q", path).Hint("wait for it, or give another name")
	}
	return nil
}

// replaceable returns where the bundle shall really be, and with whose rights.
func replaceable(path string) (string, durable.Attr, error) {
	attr := durable.Perm(0o644)
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, attr, nil
	}
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", attr, err
		}
		fi, err = os.Lstat(path)
	}
	if err != nil {
		return "", attr, err
	}
	if fi.IsDir() {
		return "", attr, fault.Usagef("%q is a directory", path).Hint("give the name of the file")
	}
	const remedy = "give another name, or take it away"
	if !fi.Mode().IsRegular() {
		return "", attr, fault.Refusedf("%q is there, and no regular file", path).Hint(remedy)
	}
	if ok, err := isBundle(path); err != nil {
		return "", attr, err
	} else if fi.Size() > 0 && !ok {
		return "", attr, fault.Refusedf("%q is there, and no bundle", path).Hint(remedy)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", attr, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	attr.Mode = st.Mode & 0o777
	if os.Geteuid() == 0 {
		attr.UID, attr.GID = int(st.Uid), int(st.Gid)
	}
	return path, attr, nil
}

// isBundle reports whether the file begins as every bundle does.
func isBundle(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var b [blockSize]byte
	n, err := io.ReadFull(f, b[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return n == blockSize && block(b) == header(layoutName, int64(len(layoutBytes))), nil
}

// finish puts the file in place, after it was read back.
func (d *destination) finish() error {
	var ours, there unix.Stat_t
	if err := errors.Join(unix.Fstat(d.FD(), &ours), unix.Lstat(d.temp, &there)); err != nil {
		return err
	}
	if ours.Dev != there.Dev || ours.Ino != there.Ino {
		return fmt.Errorf("somebody put another file in the place of %q", d.temp)
	}
	return d.Commit()
}

// close throws away what was not finished.
func (d *destination) close() {
	d.Abort()
	_ = d.dir.Close()
}
