package secret

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// disabled is _POSIX_VDISABLE of termios(3): no key does it.
const disabled = 0

// Unseen has the terminal show nothing of what is typed but the end of the line,
// until show is called, after which it is as it was. What was typed ahead is
// dropped both times.
//
// Ctrl-C still asks the program to end, which can show and then does. The keys for
// SIGQUIT and SIGTSTP do nothing meanwhile: they end and stop a program as it is,
// and would leave a shell in which nothing is seen.
func Unseen(tty *os.File) (show func() error, err error) {
	was, err := mode(tty, nil)
	if err != nil {
		return nil, err
	}
	silent := *was
	silent.Lflag = silent.Lflag&^unix.ECHO | unix.ICANON | unix.ISIG | unix.ECHONL
	silent.Cc[unix.VQUIT], silent.Cc[unix.VSUSP] = disabled, disabled
	if _, err := mode(tty, &silent); err != nil {
		return nil, err
	}
	return func() error {
		_, err := mode(tty, was)
		return err
	}, nil
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := mode(f, nil)
	return err == nil
}

// mode returns how the terminal is set, and sets it to next unless that is nil. It
// leaves the file one that can be read until a deadline, which Fd does not.
func mode(tty *os.File, next *unix.Termios) (now *unix.Termios, err error) {
	c, err := tty.SyscallConn()
	if err != nil {
		return nil, err
	}
	e := c.Control(func(fd uintptr) {
		if next != nil {
			err = unix.IoctlSetTermios(int(fd), unix.TCSETSF, next)
			return
		}
		now, err = unix.IoctlGetTermios(int(fd), unix.TCGETS)
	})
	return now, errors.Join(e, err)
}
