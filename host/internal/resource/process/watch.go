package process

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// askAgain is how often done is asked when nothing tells of a change, in
// milliseconds; also how long the end of a context may go unnoticed.
const askAgain = 100

// watch calls done until it says so: now, after each change of a file in dir,
// and now and then. It returns the error of done or of the context.
func watch(ctx context.Context, dir string, done func() (bool, error)) error {
	fd := notices(dir)
	if fd >= 0 {
		defer unix.Close(fd)
	}
	return follow(ctx, fd, done)
}

// notices is an inotify(7) descriptor for dir, or -1: the instances are few for
// each user, and what somebody else used up costs us promptness alone.
func notices(dir string) int {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return -1
	}
	// The state is written in place, and closed after each time.
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE); err != nil {
		unix.Close(fd)
		return -1
	}
	return fd
}

func follow(ctx context.Context, fd int, done func() (bool, error)) error {
	buf := make([]byte, 4096)
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		// A negative descriptor is left out, and only the time counts (poll(2)).
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, askAgain)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			if _, err := unix.Read(fd, buf); err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
				return err
			}
		}
	}
}
