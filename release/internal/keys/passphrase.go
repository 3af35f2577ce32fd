package keys

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Passphrase reads the passphrase from file, or else from the file that
// NOX_PASSPHRASE_FILE names (a descriptor is /dev/fd/N), or else from the
// terminal, twice when confirm is set. One line break at the end is not part of
// it.
func Passphrase(file string, confirm bool) ([]byte, error) {
	if file == "" {
		file = os.Getenv("NOX_PASSPHRASE_FILE")
	}
	if file == "" {
		return ask(confirm)
	}
	f, err := os.Open(file) // which may be a pipe: <(pass show …)
	if err != nil {
		return nil, fault.Failedf("cannot read passphrase: %w", err).Hint("give --passphrase-file FILE")
	}
	defer f.Close()
	b, err := readBounded(f)
	if err != nil {
		return nil, fault.Failedf("cannot read passphrase: %w", err).Hint("give a file that holds the passphrase alone")
	}
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	if len(b) == 0 {
		return nil, fault.Usagef("cannot read passphrase: %q is empty", file).Hint("put the passphrase into its first line")
	}
	return b, nil
}

func ask(confirm bool) ([]byte, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, fault.Usagef("cannot ask for the passphrase: there is no terminal").
			Hint("give --passphrase-file FILE")
	}
	defer tty.Close()
	first, err := prompt(tty, "Passphrase: ")
	if err != nil || !confirm {
		return first, err
	}
	again, err := prompt(tty, "Again: ")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(first, again) {
		return nil, fault.Usagef("cannot take the passphrase: the two differ")
	}
	return first, nil
}

// prompt reads one line without echo (termios(3)).
func prompt(tty *os.File, text string) ([]byte, error) {
	fd := int(tty.Fd())
	old, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the passphrase: %w", err)
	}
	silent := *old
	silent.Lflag = silent.Lflag&^unix.ECHO | unix.ICANON | unix.ISIG | unix.ECHONL
	if err := unix.IoctlSetTermios(fd, unix.TCSETSF, &silent); err != nil {
		return nil, fmt.Errorf("cannot ask for the passphrase: %w", err)
	}
	defer unix.IoctlSetTermios(fd, unix.TCSETSF, old)
	if _, err := tty.WriteString(text); err != nil {
		return nil, err
	}
	// In canonical mode a read returns one line.
	line := make([]byte, 4096)
	n, err := tty.Read(line)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the passphrase: %w", err)
	}
	line = bytes.TrimRight(line[:n], "\r\n")
	if len(line) == 0 {
		return nil, errors.New("cannot ask for the passphrase: it was left empty")
	}
	return line, nil
}
