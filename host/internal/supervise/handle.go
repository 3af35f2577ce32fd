package supervise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A Handle holds on to one process, whatever becomes of its PID.
type Handle struct {
	process *os.Process // with a pidfd: pidfd_open(2)
	PID     int
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

// acquire takes the lock of a process for as long as the file stays open.
//
// It is a record lock (fcntl(2)) and not flock(2), because the kernel then
// tells who holds it, without it being taken: see Shim. It is lost when the
// holder closes any descriptor of the file, so nothing else here opens it.
func acquire(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", name, err)
	}
	lk := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lk); err != nil {
		f.Close()
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
			return nil, fmt.Errorf("process %q has a shim already", name)
		}
		return nil, fmt.Errorf("cannot lock %q: %w", name, err)
	}
	return f, nil
}

// Shim returns a handle on the shim that lives over the folder dir, or nil
// when there is none. It changes nothing and is in nobody's way.
func Shim(dir string) (*Handle, error) {
	f, err := os.Open(filepath.Join(dir, LockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pid, err := holder(f)
	if err != nil || pid == 0 {
		return nil, err
	}
	h, err := open(pid)
	if h == nil || err != nil {
		return nil, err
	}
	// It holds the lock still: so the one we hold on to is the shim.
	if again, err := holder(f); err != nil || again != pid {
		h.Close()
		return nil, err
	}
	return h, nil
}

// holder is the PID of the process that holds the lock, or 0.
func holder(f *os.File) (int, error) {
	lk := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lk); err != nil {
		return 0, fmt.Errorf("cannot ask who holds %q: %w", f.Name(), err)
	}
	if lk.Type == syscall.F_UNLCK {
		return 0, nil
	}
	if lk.Pid <= 0 {
		return 0, fmt.Errorf("%q is held from another PID namespace", f.Name())
	}
	return int(lk.Pid), nil
}
