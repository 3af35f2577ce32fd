package supervise

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// An identity tells cheaply that a file is what it was.
type identity struct {
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Size int64  `json:"size"`
	// Mtime and Ctime are in nanoseconds.
	Mtime int64 `json:"mtime"`
	Ctime int64 `json:"ctime"`
}

func identityOf(fi os.FileInfo) identity {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}

// content is the identity without the ctime, which changes when the file gets
// another mode or name, or loses its last one.
func (i identity) content() identity {
	i.Ctime = 0
	return i
}

// maxExecutable bounds what is read of an executable, in bytes: it may be anybody's,
// and sparse.
const maxExecutable = 1 << 30

// An executable is the file that a process is started from, held open: by then the
// path may have led elsewhere, and as long as it is open its inode is no other's.
type executable struct {
	file *os.File
	id   identity
	mode uint32
	uid  uint32
	gid  uint32
}

// openExecutable opens the regular file that path leads to.
func openExecutable(path string) (*executable, error) {
	// Without O_NONBLOCK a fifo would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	e := &executable{file: f, id: identityOf(fi)}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		e.mode, e.uid, e.gid = st.Mode&0o7777, st.Uid, st.Gid
	}
	return e, nil
}

func (e *executable) close() {
	if e != nil {
		e.file.Close()
	}
}

// is reports whether the file at path is this one, unchanged.
func (e *executable) is(path string) bool {
	fi, err := os.Stat(path)
	return e != nil && err == nil && identityOf(fi).content() == e.id.content()
}

// digest hashes what is in it now. The error is of one that is being written.
func (e *executable) digest() (string, error) { return e.copyTo(io.Discard) }

// copyTo copies it, and says what the digest is of what was copied.
func (e *executable) copyTo(w io.Writer) (string, error) {
	if e.id.Size > maxExecutable {
		return "", errors.New("it is too large to be kept or told by its content")
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, h), io.NewSectionReader(e.file, 0, e.id.Size+1))
	if err != nil {
		return "", err
	}
	fi, err := e.file.Stat()
	if err != nil {
		return "", err
	}
	if n != e.id.Size || identityOf(fi).content() != e.id.content() {
		return "", errors.New("it was written while it was read")
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// another is a second handle of the same file, for another goroutine.
func (e *executable) another() (*executable, error) {
	// Also when it has no name any more (proc_pid_fd(5)).
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", e.file.Fd()))
	if err != nil {
		return nil, err
	}
	c := *e
	c.file = f
	return &c, nil
}
