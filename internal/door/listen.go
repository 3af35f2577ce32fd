package door

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// OwnerOnly admits root and the user the program runs as: "root only" for a
// program of root's, "its user only" under --root.
func OwnerOnly(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }

// Listen makes the socket at path, mode 0600, in place of a dead one that may
// be there. One that somebody listens on is left to him, though the caller should
// hold a lock that says it is the only one: on a read-only file system there may be
// none. Connections of users that allow refuses are closed before a byte is read.
func Listen(path string, allow func(uid uint32) bool) (net.Listener, error) {
	var l net.Listener
	err := short(path, func(p string) error {
		if c, err := net.DialTimeout("unix", p, time.Second); err == nil || errors.Is(err, unix.EAGAIN) {
			if c != nil {
				c.Close()
			}
			return errors.New("another program answers there")
		}
		if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		var err error
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: p, Net: "unix"})
		if err != nil {
			return err
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		return os.Chmod(p, 0o600)
	})
	if err != nil {
		if l != nil {
			l.Close()
		}
		return nil, fmt.Errorf("cannot listen on %q: %w", path, err)
	}
	return &listener{Listener: l, path: path, allow: allow}, nil
}

// Dial connects to the socket at path.
func Dial(ctx context.Context, path string) (c net.Conn, err error) {
	err = short(path, func(p string) error {
		d := net.Dialer{Timeout: 5 * time.Second}
		c, err = d.DialContext(ctx, "unix", p)
		return err
	})
	return c, err
}

// short calls f with a path to the same socket that fits into sockaddr_un: that
// holds 107 bytes (unix(7)), so the directory of a longer one is opened, and the
// socket addressed through /proc/self/fd.
func short(path string, f func(string) error) error {
	if len(path) <= 107 {
		return f(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

type listener struct {
	net.Listener
	path  string
	allow func(uint32) bool
}

// Accept returns the next connection of a user that may speak.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peer(c); err == nil && l.allow(uid) {
			return c, nil
		}
		c.Close()
	}
}

// Close stops listening and takes the socket away.
func (l *listener) Close() error {
	err := l.Listener.Close()
	_ = os.Remove(l.path)
	return err
}

// peer is the user at the other end, by the kernel's word (SO_PEERCRED).
func peer(c net.Conn) (uint32, error) {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if cerr != nil {
		return 0, cerr
	}
	return cred.Uid, nil
}
