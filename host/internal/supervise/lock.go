package supervise

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrHeld is the error when a shim lives over a folder that is to be without.
var ErrHeld = errors.New("it has a shim already")

// A lock is held by a shim from before it makes anything until its end. It
// says two things at once, which no full or broken disk can take away: that a
// shim lives, and what it runs. The second is the length of the locked range.
//
// It is a record lock (fcntl(2)) and not flock(2), because the kernel then
// tells who holds it, and of what range, without it being taken: see Shim. It
// is lost when the holder closes any descriptor of the file, so a shim opens
// it nowhere else.
type lock struct {
	file   *os.File
	dir    string
	length int64
}

// mark is the length of the range that stands for a definition: 62 bits of its
// digest. 1 is no definition's; it is locked by who removes the folder.
func mark(digest string) int64 {
	sum := sha256.Sum256([]byte(digest))
	return int64(binary.BigEndian.Uint64(sum[:])>>2) + 2
}

// acquire takes the lock of the folder dir; the error is ErrHeld when that is
// another's.
func acquire(dir string, length int64) (*lock, error) {
	path := filepath.Join(dir, LockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	l := &lock{f, dir, length}
	lk := syscall.Flock_t{Type: syscall.F_WRLCK, Len: length}
	err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lk)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		err = ErrHeld
	}
	if err == nil {
		// Who held it may have deleted it after we opened it.
		if there, serr := l.there(); serr != nil || !there {
			err = errors.Join(fs.ErrNotExist, serr)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// there reports whether the lock is the one that others would find.
func (l *lock) there() (bool, error) {
	mine, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	found, err := os.Lstat(filepath.Join(l.dir, LockFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, found), err
}

// renew takes the lock again when somebody deleted or replaced its file. The
// error is fs.ErrNotExist when the folder is gone, and ErrHeld when it is
// another's by now; whatever else keeps it from being renewed passes.
func (l *lock) renew() error {
	if there, err := l.there(); there || err != nil {
		return nil
	}
	next, err := acquire(l.dir, l.length)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrHeld) {
		return err
	}
	if err != nil {
		return nil
	}
	old := l.file
	l.file = next.file
	was, err1 := old.Stat()
	is, err2 := l.file.Stat()
	if err1 == nil && err2 == nil && !os.SameFile(was, is) {
		old.Close() // were it the same file, that would let go of it
	}
	return nil
}

// Shim returns a handle on the shim that lives over the folder dir, or nil
// when there is none. It changes nothing and is in nobody's way.
func Shim(dir string) (*Handle, error) {
	path := filepath.Join(dir, LockFile)
	h, err := holds(path)
	if h != nil || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return h, err
	}
	fi, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if h, err = stray(dir, fi); h != nil || err != nil {
		return h, err
	}
	// Or it took its lock anew while we looked elsewhere.
	h, err = holds(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return h, err
}

// holds returns a handle on the shim that holds the lock file at path, or nil.
func holds(path string) (*Handle, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lk, err := holder(f)
	if err != nil || lk.Pid == 0 || lk.Len == 1 {
		return nil, err
	}
	h, err := open(int(lk.Pid))
	if h == nil || err != nil {
		return nil, err
	}
	// It holds the lock still: so the one we hold on to is the shim.
	if again, err := holder(f); err != nil || again != lk {
		h.Close()
		return nil, err
	}
	h.mark = lk.Len
	return h, nil
}

// holder is the lock that another process has on the file; its Pid is 0 when
// there is none.
func holder(f *os.File) (syscall.Flock_t, error) {
	lk := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lk); err != nil {
		return lk, fmt.Errorf("cannot ask who holds %q: %w", f.Name(), err)
	}
	if lk.Type == syscall.F_UNLCK {
		return syscall.Flock_t{}, nil
	}
	if lk.Pid <= 0 {
		return lk, fmt.Errorf("%q is held from another PID namespace", f.Name())
	}
	return lk, nil
}
