// Package input reads what a person or another program gives: files, pipes and
// terminals. What it promises is that a wait ends with the context of the call:
// Go's own read of a terminal, or of a pipe that was given, waits until somebody
// writes, and a signal that is handled does not end it. It changes nothing about
// what it reads, which others may have open too, and keeps nothing.
package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Interruptible returns a reader of r whose waiting ends with ctx. What cannot
// wait (a regular file, or no file at all) is returned as it is.
func Interruptible(ctx context.Context, r io.Reader) io.Reader {
	f, ok := r.(*os.File)
	if !ok {
		return r
	}
	fi, err := f.Stat()
	if err != nil || fi.Mode().IsRegular() {
		return r
	}
	return &waiting{ctx, f}
}

// Open opens the file to be read, or returns given for "-", which is refused where
// nothing is given (nil). A pipe with a name is opened before somebody writes to it,
// and waited for as Interruptible does.
func Open(ctx context.Context, name string, given io.Reader) (io.Reader, func(), error) {
	if name == "-" {
		if given == nil {
			return nil, nil, fault.Usagef("there is no standard input to read").Hint("name a file")
		}
		return Interruptible(ctx, given), func() {}, nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, nil, err
	}
	return Interruptible(ctx, f), func() { _ = f.Close() }, nil
}

type waiting struct {
	ctx context.Context
	f   *os.File
}

// Read waits in poll(2) for the file or the end of ctx.
func (w *waiting) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	ended, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("cannot wait: %w", err)
	}
	told := make(chan struct{})
	stop := context.AfterFunc(w.ctx, func() {
		defer close(told)
		_, _ = unix.Write(ended, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	})
	defer func() {
		if !stop() {
			<-told // nobody writes to a number that is another file by then
		}
		_ = unix.Close(ended)
	}()
	for {
		fd := int(w.f.Fd())
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(ended), Events: unix.POLLIN}}, -1)
		switch {
		case w.ctx.Err() != nil:
			return 0, fmt.Errorf("interrupted: %w", w.ctx.Err())
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, &fs.PathError{Op: "poll", Path: w.f.Name(), Err: err}
		}
		n, err := unix.Read(fd, p)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return 0, &fs.PathError{Op: "read", Path: w.f.Name(), Err: err}
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
