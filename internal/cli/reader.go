package cli

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/secret"
)

// ToTerminal reports whether standard output is a terminal.
func (s Stdio) ToTerminal() bool {
	f := s.outFile()
	return f != nil && secret.IsTerminal(f)
}

// outFile is the file that standard output is, or nil.
func (s Stdio) outFile() *os.File {
	w := s.Out
	if a, ok := w.(*answer); ok {
		w = a.w
	}
	f, _ := w.(*os.File)
	return f
}

// UntilUnread returns a context that ends with ctx, and when standard output is a
// pipe or a socket that nobody reads any more. Who follows something that is silent
// would otherwise notice when it next has something to say, which may be never.
func (s Stdio) UntilUnread(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	f := s.outFile()
	if f == nil {
		return ctx, cancel
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return ctx, cancel // the next write notices
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c, err := f.SyscallConn()
		if err != nil {
			return
		}
		_ = c.Control(func(fd uintptr) {
			// An error is told of unasked: the reader of a pipe has closed it (poll(2)).
			fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(wake), Events: unix.POLLIN}}
			for {
				_, err := unix.Poll(fds, -1)
				if errors.Is(err, unix.EINTR) {
					continue
				}
				if err == nil && fds[0].Revents != 0 {
					cancel()
				}
				return
			}
		})
	}()
	return ctx, func() {
		cancel()
		_, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		<-watched
		_ = unix.Close(wake)
	}
}
