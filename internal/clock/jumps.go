package clock

import (
	"context"
	"errors"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Jumps tells that the machine's clock was set: by a person, by a step of NTP, or
// by the kernel when the machine wakes from a suspend. A clock that is slewed does
// not jump. It is one timer that never ends by itself and is cancelled by a jump
// (TFD_TIMER_CANCEL_ON_SET of timerfd_create(2)).
type Jumps struct{ timer *os.File }

// WatchJumps begins to watch the clock, until Close.
func WatchJumps() (*Jumps, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	never := unix.ItimerSpec{Value: unix.Timespec{Sec: math.MaxInt64}}
	// It says ECANCELED, and is armed, when the clock jumped meanwhile.
	if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &never, nil); err != nil && !errors.Is(err, unix.ECANCELED) {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("timerfd_settime", err)
	}
	return &Jumps{os.NewFile(uintptr(fd), "timerfd")}, nil
}

// Await returns nil when the clock has jumped since it last did: at once when it
// already has, however often. Its error is that of ctx, with which the watch is
// over, or says why nothing is noticed any more.
func (j *Jumps) Await(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = j.timer.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var ticks [8]byte
	for {
		_, err := j.timer.Read(ticks[:])
		switch {
		case errors.Is(err, unix.ECANCELED):
			return nil // and it goes on: the timer stays armed
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		}
	}
}

// Close ends the watch.
func (j *Jumps) Close() error { return j.timer.Close() }
