package supervise

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// The reading side of output.log. It takes no lock and changes nothing: whoever
// writes closes a file before it becomes the older one, so who has read that to its
// end, and sees that it has been moved, reads it to its end once more and goes on
// with what is there now.

// followEvery is how often a file that is followed is looked at. inotify(7) would be
// quicker, and is not on every file system, nor for everybody there is.
const followEvery = 100 * time.Millisecond

// ErrRemoved is the error of who follows a process whose folder was taken away.
var ErrRemoved = errors.New("the process was removed")

// CopyOutput writes to w what the process of the folder dir printed, as far as it is
// kept: its last lines, or all of it when lines is 0. With follow it goes on until
// ctx ends, which is no error; over restarts of the process and of the shim, and over
// the bound of the log. Only who reads slower than the process prints a whole log
// misses something. It holds no line in memory.
func CopyOutput(ctx context.Context, dir string, lines int, follow bool, w io.Writer) error {
	path := filepath.Join(dir, OutputFile)
	older, newest, err := openLogs(path)
	if err != nil {
		return err
	}
	r := &follower{dir: dir, path: path, file: newest, w: w}
	defer func() { r.file = closed(r.file, nil) }()
	defer closed(older, nil)
	if err := skip(lines, older, newest); err != nil {
		return err
	}
	for _, f := range []*os.File{older, newest} {
		if err := copyNow(w, f); err != nil {
			return err
		}
	}
	if !follow {
		return nil
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := r.more(); err != nil {
				return err
			}
		}
	}
}

// A follower has read file to its end; it is nil when there was none yet.
type follower struct {
	dir, path string
	file      *os.File
	w         io.Writer
}

// more copies what came since, and goes on with the next file when there is one.
func (r *follower) more() error {
	if err := copyNow(r.w, r.file); err != nil {
		return err
	}
	if r.file != nil && is(r.file, r.path) {
		return r.emptied()
	}
	if _, err := os.Lstat(r.path); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(r.dir); errors.Is(err, fs.ErrNotExist) {
			return ErrRemoved
		}
		return nil // nothing was printed yet, or the next file is being made
	}
	// It was moved after its last byte was written, which may have been after ours.
	if err := copyNow(r.w, r.file); err != nil {
		return err
	}
	older, newest, err := openLogs(r.path)
	if newest == nil || err != nil {
		closed(older, nil)
		return err // it was moved once more just now
	}
	if older != nil && !same(r.file, older) {
		err = copyNow(r.w, older)
	}
	closed(older, nil)
	r.file = closed(r.file, newest)
	if err == nil {
		err = copyNow(r.w, r.file)
	}
	return err
}

// emptied begins anew with a file that somebody cut to nothing.
func (r *follower) emptied() error {
	at, err := r.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	fi, err := r.file.Stat()
	if err == nil && fi.Size() < at {
		_, err = r.file.Seek(0, io.SeekStart)
	}
	return err
}

// openLogs opens the older file and the one that is written; nil for what is not
// there. Both are of the same moment: one is not what the other was.
func openLogs(path string) (older, newest *os.File, err error) {
	for tries := 1; ; tries++ {
		newest, err = openLog(path)
		if err != nil {
			return nil, nil, err
		}
		if older, err = openLog(path + ".1"); err != nil {
			closed(newest, nil)
			return nil, nil, err
		}
		if is(newest, path) || tries == 100 {
			return older, newest, nil
		}
		closed(older, nil)
		closed(newest, nil)
	}
}

func openLog(path string) (*os.File, error) {
	// Without O_NONBLOCK a fifo would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, errors.New(path+" is no regular file"))
	}
	return f, nil
}

// is reports whether f is what lies at path; nil is nothing.
func is(f *os.File, path string) bool {
	there, err := os.Lstat(path)
	if f == nil || err != nil {
		return f == nil && errors.Is(err, fs.ErrNotExist)
	}
	fi, err := f.Stat()
	return err == nil && os.SameFile(fi, there)
}

// same reports whether both are one file.
func same(f, g *os.File) bool {
	if f == nil || g == nil {
		return false
	}
	a, err1 := f.Stat()
	b, err2 := g.Stat()
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// closed closes f and returns next.
func closed(f, next *os.File) *os.File {
	if f != nil {
		_ = f.Close()
	}
	return next
}

// copyNow copies what f holds now: of a process that prints all the time there is no
// end.
func copyNow(w io.Writer, f *os.File) error {
	if f == nil {
		return nil
	}
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.LimitReader(f, fi.Size()-at))
	return err
}

// skip moves both files to where their last lines begin; 0 is their beginning. The
// two are one text, whose lines may go from the older one on into the newest.
func skip(lines int, older, newest *os.File) error {
	if lines <= 0 {
		return nil
	}
	last := true
	for _, f := range []*os.File{newest, older} {
		if f == nil {
			continue
		}
		at, err := lineStart(f, &lines, &last)
		if err != nil {
			return err
		}
		if _, err := f.Seek(at, io.SeekStart); err != nil {
			return err
		}
	}
	return nil
}

// lineStart looks backwards for where the last of the lines begin, and returns where,
// or the file's beginning. It counts lines down, to -1 when that was found; last is
// true until it has seen the last byte of all, which ends a line and begins none.
func lineStart(f *os.File, lines *int, last *bool) (int64, error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || *lines < 0 {
		return end, err
	}
	buf := make([]byte, 64<<10)
	for end > 0 {
		b := buf[:min(end, int64(len(buf)))]
		if _, err := f.ReadAt(b, end-int64(len(b))); err != nil {
			return 0, err
		}
		search := b
		if *last {
			search, *last = b[:len(b)-1], false
		}
		for {
			i := bytes.LastIndexByte(search, '\n')
			if i < 0 {
				break
			}
			if *lines--; *lines == 0 {
				*lines = -1
				return end - int64(len(b)) + int64(i) + 1, nil
			}
			search = search[:i]
		}
		end -= int64(len(b))
	}
	return 0, nil
}
