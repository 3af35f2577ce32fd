package bundle

import (
	"context"
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
// is empty, or is a bundle. Anything else is somebody's, and left; so is what comes
// there, or is changed, while the bundle is written. A bundle is replaced with its
// owner and mode; a symlink is followed to what it leads to.
//
// The directory may belong to somebody else: it is opened once, and what is in it is
// looked at and replaced there, wherever its path leads by then.
type destination struct {
	*durable.Pending
	dir  *durable.Dir
	base string
	// old is what was there at the beginning, and was what it was; nil when nothing
	// was there.
	old  *os.File
	was  unix.Stat_t
	attr durable.Attr
}

// meanwhile is called between looking and making: where a test stands in for who
// swaps names.
var meanwhile = func() {}

// openDestination begins a bundle at path. What the bundle is made of, inputs, is
// not replaced by it.
func openDestination(path string, inputs ...string) (*destination, error) {
	switch {
	case path == "-", path == "/dev/stdout", path == "/dev/stderr":
		return nil, fault.Usagef("%q is no file, and a bundle is one", path).Hint("give the name of a file; ./- is one that is called so")
	case strings.HasSuffix(path, "/"):
		return nil, fault.Usagef("%q names a directory", path).Hint("give the name of the file")
	}
	d, err := look(path)
	if err != nil {
		return nil, err
	}
	meanwhile()
	if err := d.begin(inputs); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *destination) begin(inputs []string) (err error) {
	if err := d.none(inputs); err != nil {
		return err
	}
	if err := d.free(); err != nil {
		return err
	}
	if d.Pending, err = d.dir.Create(d.base, d.attr); err != nil {
		return err
	}
	// For as long as the file is open nobody else takes its name.
	return unix.Flock(d.FD(), unix.LOCK_EX|unix.LOCK_NB)
}

// errSymlink is that a symlink is there.
var errSymlink = errors.New("it is a symlink")

// look opens the directory where the bundle shall really be.
func look(path string) (*destination, error) {
	d, err := lookAt(path)
	if !errors.Is(err, errSymlink) {
		return d, err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Refusedf("%q is a symlink, and leads to no file", path).Hint("remove it, or give another name")
	}
	if err != nil {
		return nil, err
	}
	if d, err = lookAt(real); errors.Is(err, errSymlink) {
		return nil, changed(real)
	}
	return d, err
}

func lookAt(path string) (*destination, error) {
	dir, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	d := &destination{dir: dir, base: filepath.Base(path), attr: durable.Perm(0o644)}
	if err := d.judge(); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// judge holds that what is there may be replaced, and takes down what it is.
func (d *destination) judge() error {
	err := unix.Fstatat(d.dir.FD(), d.base, &d.was, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "stat", Path: d.path(), Err: err}
	}
	const remedy = "give another name, or take it away"
	switch d.was.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return errSymlink
	case unix.S_IFDIR:
		return fault.Usagef("%q is a directory", d.path()).Hint("give the name of the file")
	case unix.S_IFREG:
	default:
		return fault.Refusedf("%q is there, and no regular file", d.path()).Hint(remedy)
	}
	fd, err := unix.Openat(d.dir.FD(), d.base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: d.path(), Err: err}
	}
	d.old = os.NewFile(uintptr(fd), d.path())
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil || is.Ino != d.was.Ino || is.Dev != d.was.Dev {
		return errors.Join(err, changed(d.path()))
	}
	if ok, err := isBundle(d.old); err != nil {
		return err
	} else if d.was.Size > 0 && !ok {
		return fault.Refusedf("%q is there, and no bundle", d.path()).Hint(remedy)
	}
	d.attr.Mode = d.was.Mode & 0o777
	if os.Geteuid() == 0 {
		d.attr.UID, d.attr.GID = int(d.was.Uid), int(d.was.Gid)
	}
	return nil
}

// isBundle reports whether the file begins as every bundle does.
func isBundle(f io.Reader) (bool, error) {
	var b [blockSize]byte
	n, err := io.ReadFull(f, b[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return n == blockSize && block(b) == header(layoutName, int64(len(layoutBytes))), nil
}

// none holds that none of the inputs is what would be replaced.
func (d *destination) none(inputs []string) error {
	if d.old == nil {
		return nil
	}
	for _, path := range inputs {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && st.Dev == d.was.Dev && st.Ino == d.was.Ino {
			return fault.Usagef("%q is what the bundle is made of", d.path()).Hint("give the bundle another name")
		}
	}
	return nil
}

func (d *destination) path() string { return filepath.Join(d.dir.Name(), d.base) }
func (d *destination) temp() string { return durable.TempName(d.base) }

// free refuses a name that another process is writing to: what a dead one left is
// taken over.
func (d *destination) free() error {
	f, err := d.openTemp()
	if err != nil {
		return nil // none is there, or Create will say what is wrong
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return fault.Failedf("another program is writing %q", d.path()).Hint("wait for it, or give another name")
	}
	return nil
}

func (d *destination) openTemp() (*os.File, error) {
	path := filepath.Join(d.dir.Name(), d.temp())
	fd, err := unix.Openat(d.dir.FD(), d.temp(), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// readBack reads what was written.
func (d *destination) readBack(ctx context.Context, opts Options) (*Info, error) {
	f, err := d.openTemp()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := Read(ctx, f, opts)
	if err != nil {
		return nil, fmt.Errorf("the finished file does not read back: %w", err)
	}
	return info, nil
}

// close throws away what was not finished.
func (d *destination) close() {
	if d.Pending != nil {
		d.Abort()
	}
	if d.old != nil {
		_ = d.old.Close()
	}
	_ = d.dir.Close()
}

func changed(path string) error {
	return fault.Failedf("somebody changed %q meanwhile; it is as they left it", path).Hint("see what it is, and run it again")
}
