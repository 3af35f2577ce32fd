package keys

import (
	"bytes"
	"context"
	"os"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// Passphrase reads the passphrase from file, or else from the file that
// NOX_PASSPHRASE_FILE names (a descriptor is /dev/fd/N), or else from the
// terminal, twice when confirm is set, until ctx ends. One line break at the end
// is not part of it.
func Passphrase(ctx context.Context, file string, confirm bool) ([]byte, error) {
	if file == "" {
		file = os.Getenv("NOX_PASSPHRASE_FILE")
	}
	if file == "" {
		return ask(ctx, confirm)
	}
	f, done, err := input.Open(ctx, file, nil) // which may be a pipe: <(pass show …)
	if err != nil {
		return nil, fault.Failedf("cannot read passphrase: %q: %w", file, err).Hint("give --passphrase-file FILE")
	}
	defer done()
	b, err := readBounded(f, file)
	if err != nil {
		return nil, fault.Failedf("cannot read passphrase: %w", err).Hint("give a file that holds the passphrase alone")
	}
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	if len(b) == 0 {
		return nil, fault.Usagef("cannot read passphrase: %q is empty", file).Hint("put the passphrase into its first line")
	}
	return b, nil
}
