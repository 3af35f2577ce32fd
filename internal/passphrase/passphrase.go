// Package passphrase reads the passphrase of what a person keeps closed: from a file,
// a pipe, or the terminal, where it is not shown. It is in no argument and in no
// variable of the environment (that names a file), and in memory once: the caller
// clears it. It keeps nothing.
package passphrase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/secret"
)

// maxSize bounds a passphrase, in bytes.
const maxSize = 64 << 10

// A Source is where a passphrase may come from.
type Source struct {
	// File is the file that holds it, "-" for In; "" is the one that
	// NOX_PASSPHRASE_FILE names, or the terminal.
	File string
	In   io.Reader
}

// Read reads the passphrase from its file (a descriptor is /dev/fd/N), or else
// from the terminal, twice when confirm is set, until ctx ends. One line break at the
// end of the file is not part of it; all else that is in it is, further lines too.
// The caller clears it.
func Read(ctx context.Context, from Source, confirm bool) ([]byte, error) {
	file := from.File
	if file == "" {
		file = os.Getenv("NOX_PASSPHRASE_FILE")
	}
	in, ok := from.In.(*os.File)
	if file == "" || file == "-" && ok && secret.IsTerminal(in) {
		return ask(ctx, confirm) // what is typed is not shown
	}
	f, done, err := input.Open(ctx, file, from.In) // which may be a pipe: <(pass show …)
	if err != nil {
		return nil, fault.Failedf("cannot read passphrase: %q: %w", file, err).Hint("give --passphrase-file FILE")
	}
	defer done()
	b, err := readSecret(f, file)
	if err != nil {
		return nil, fault.Failedf("cannot read passphrase: %w", err).Hint("give a file that holds the passphrase alone")
	}
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	if len(b) == 0 {
		return nil, fault.Usagef("cannot read passphrase: %q is empty", file).Hint("put the passphrase into its first line, and nothing after that")
	}
	return b, nil
}

// readSecret reads all of f into memory that never moves: a buffer that grows leaves
// copies behind, which nobody clears.
func readSecret(f io.Reader, name string) ([]byte, error) {
	b := make([]byte, maxSize+1)
	n, err := io.ReadFull(f, b)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return b[:n], nil
	case err == nil:
		err = fmt.Errorf("%q has more than %d bytes", name, maxSize)
	}
	clear(b)
	return nil, err
}
