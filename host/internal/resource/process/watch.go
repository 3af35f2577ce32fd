package process

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// watch calls done until it says so: now, and after each change of a file in
// dir. It returns the error of done or of the context.
func watch(ctx context.Context, dir string, done func() (bool, error)) error {
	if ok, err := done(); ok || err != nil {
		return err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer events.Close()
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = events.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buf := make([]byte, 4096)
	for {
		// What happened before the watch was there must not be missed.
		if ok, err := done(); ok || err != nil {
			return err
		}
		if _, err := events.Read(buf); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
	}
}
