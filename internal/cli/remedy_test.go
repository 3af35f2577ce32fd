package cli

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestAFaultOfTheSystemHasARemedy(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "/d/f", Err: syscall.ENOSPC}
	for want, err := range map[string]error{
		"p: cannot build: write /d/f: no space left on device; make room and run it again\n": fmt.Errorf("cannot build: %w", full),
		"p: cannot build: write /d/f: no space left on device; give --out DIR\n":             fault.Failedf("cannot build: %w", full).Hint("give --out DIR"),
		"p: cannot build: no such file or directory\n":                                       fmt.Errorf("cannot build: %w", syscall.ENOENT),
	} {
		var b bytes.Buffer
		if PrintFault(&b, "p", err, false); b.String() != want {
			t.Errorf("%q, want %q", b.String(), want)
		}
	}
}
