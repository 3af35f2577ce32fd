package passphrase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/secret"
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
	defer clear(again)
	if !bytes.Equal(first, again) {
		return nil, fault.Usagef("cannot take the passphrase: the two differ")
	}
	return first, nil
}

// prompt reads one line that is not shown. Whatever ends it, the end of ctx
// included, the terminal echoes again afterwards.
func prompt(ctx context.Context, tty *os.File, text string) (line []byte, err error) {
	show, err := secret.Unseen(tty)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the passphrase: %w", err)
	}
	defer func() {
		if e := show(); err == nil && e != nil {
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
