package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// A Handle holds on to one process, whatever becomes of its PID.
type Handle struct {
	process *os.Process // with a pidfd: pidfd_open(2)
	PID     int
	mark    int64 // of a shim: of the definition it runs
}

// Runs reports whether the shim runs the definition of that Digest, which is
// known as long as it lives, whatever became of its files.
func (h *Handle) Runs(digest string) bool { return h.mark == mark(digest) }

// Wrote reports whether the state is the shim's own, and not one's before it.
func (h *Handle) Wrote(s State) bool {
	p, err := procOf(h.PID)
	return err == nil && p == s.Shim
}

// Find returns a handle on the process p, or nil when it is gone, or its PID
// belongs to somebody else by now.
func Find(p Proc) (*Handle, error) {
	boot, err := bootID()
	if err != nil || boot != p.Boot || p.PID <= 1 {
		return nil, err
	}
	h, err := open(p.PID)
	if h == nil || err != nil {
		return nil, err
	}
	// Only now, with the PID held, does the start time say who it is.
	s, err := readStat(p.PID)
	if err != nil || s.start != p.Start || s.zombie {
		h.Close()
		return nil, nil
	}
	return h, nil
}

func open(pid int) (*Handle, error) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil, nil
	}
	// Signal 0 asks whether it lives.
	if err := process.Signal(syscall.Signal(0)); errors.Is(err, os.ErrProcessDone) {
		return nil, nil
	}
	if err := process.WithHandle(func(uintptr) {}); err != nil {
		return nil, fmt.Errorf("cannot hold on to process %d: %w", pid, err)
	}
	return &Handle{process: process, PID: pid}, nil
}

// Close lets go of the process.
func (h *Handle) Close() { _ = h.process.Release() }

// Signal sends a signal. One that is gone already is no error.
func (h *Handle) Signal(sig syscall.Signal) error {
	err := h.process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Wait waits until the process ended, or the context.
func (h *Handle) Wait(ctx context.Context) error {
	var gone bool
	for !gone {
		if err := ctx.Err(); err != nil {
			return err
		}
		var werr error
		err := h.process.WithHandle(func(fd uintptr) { gone, werr = readable(int(fd), 50*time.Millisecond) })
		if err = errors.Join(err, werr); err != nil {
			return err
		}
	}
	return nil
}

// readable waits until fd is readable, at most that long. A pidfd is when its
// process ended.
func readable(fd int, limit time.Duration) (bool, error) {
	ep, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return false, err
	}
	defer syscall.Close(ep)
	ev := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
	if err := syscall.EpollCtl(ep, syscall.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return false, err
	}
	n, err := syscall.EpollWait(ep, make([]syscall.EpollEvent, 1), int(limit.Milliseconds()))
	if errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return n > 0, err
}
