package keys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// ask asks the person at the terminal.
func ask(ctx context.Context, confirm bool) ([]byte, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, fault.Usagef("cannot ask for the passphrase: there is no terminal").
			Hint("give --passphrase-file FILE")
	}
	defer tty.Close()
	first, err := prompt(ctx, tty, "Passphrase: ")
	if err != nil || !confirm {
		return first, err
	}
	again, err := prompt(ctx, tty, "Again: ")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(first, again) {
		return nil, fault.Usagef("cannot take the passphrase: the two differ")
	}
	return first, nil
}

// prompt reads one line without echo (termios(3)). Whatever ends it, the end of
// ctx included, the terminal echoes again afterwards.
func prompt(ctx context.Context, tty *os.File, text string) (line []byte, err error) {
	old, err := mode(tty, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the passphrase: %w", err)
	}
	silent := *old
	silent.Lflag = silent.Lflag&^unix.ECHO | unix.ICANON | unix.ISIG | unix.ECHONL
	if _, err := mode(tty, &silent); err != nil {
		return nil, fmt.Errorf("cannot ask for the passphrase: %w", err)
	}
	defer func() {
		if _, e := mode(tty, old); err == nil && e != nil {
			err = fmt.Errorf("cannot make the terminal echo again: %w", e)
		}
	}()
	if _, err := tty.WriteString(text); err != nil {
		return nil, err
	}
	// A deadline in the past ends the read that waits.
	defer context.AfterFunc(ctx, func() { _ = tty.SetReadDeadline(time.Unix(1, 0)) })()
	// In canonical mode a read returns one line.
	line = make([]byte, 4096)
	n, err := tty.Read(line)
	if ctx.Err() != nil {
		_, _ = tty.WriteString("\n") // what follows begins on a line of its own
		return nil, errors.New("cannot ask for the passphrase: it was interrupted")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the passphrase: %w", err)
	}
	line = bytes.TrimRight(line[:n], "\r\n")
	if len(line) == 0 {
		return nil, errors.New("cannot ask for the passphrase: it was left empty")
	}
	return line, nil
}

// mode returns how the terminal is set, and sets it to next unless that is nil;
// what was typed ahead is dropped then. It leaves the file one that can be read
// until a deadline, which Fd does not.
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
