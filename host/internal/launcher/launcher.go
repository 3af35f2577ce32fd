// Package launcher is what the service manager starts in place of the host:
// `mesh-host launch BINARY`, run from a copy of the binary that only a proven
// version replaces. It becomes the host (same process, same environment, so
// that notify and watchdog go on), or says why it cannot.
//
// It promises to run before anything else of the binary and to use the
// standard library alone, so that what breaks the host does not break it.
//
// It does not yet count the starts of a host that never proved itself, nor put
// the last good binary back: an exec that fails is the one failure it sees.
package launcher

import (
	"fmt"
	"os"
	"syscall"
)

// ExitCannotStart is the exit code of a launcher that could not start any
// host. Nothing else of this project uses it, so that the unit can name it in
// RestartPreventExitStatus. It is EX_CONFIG of sysexits(3).
const ExitCannotStart = 78

// Main is `mesh-host launch BINARY`. It returns only when it failed.
func Main(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: mesh-host launch BINARY")
		return 2
	}
	err := become(args[0])
	fmt.Fprintf(os.Stderr, "mesh-host launch: cannot start %q: %v\n", args[0], err)
	return ExitCannotStart
}

// become replaces this process by the host; it returns only an error.
func become(binary string) error {
	return syscall.Exec(binary, []string{binary, "run"}, os.Environ())
}
