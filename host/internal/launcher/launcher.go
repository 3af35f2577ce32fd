// Package launcher is what the service manager starts in place of the host:
// `mesh-host launch BINARY`, run from a copy of the binary that only a proven
// version replaces. It becomes the host (same process, same environment, so
// that notify and watchdog go on), or says why it cannot.
//
// It promises to run before anything else of the binary and to use the
// standard library alone, so that what breaks the host does not break it.
//
// When the installed binary cannot be executed (cut, of another architecture,
// gone for a moment), the launcher becomes the host from its own copy, so that
// the machine is not left alone. It does not yet count the starts of a host
// that executes and never proves itself, nor put the last good binary back.
package launcher

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// ExitCannotStart is the exit code of a launcher that could start no host at
// all. Nothing else of this project ends so: the unit names it in
// RestartPreventExitStatus, and systemd gives up on it.
const ExitCannotStart = 179

// Main is `mesh-host launch BINARY`. It returns only when it failed.
func Main(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: mesh-host launch BINARY")
		return 2
	}
	for _, binary := range []string{args[0], "/proc/self/exe"} {
		err := syscall.Exec(binary, []string{args[0], "run"}, os.Environ())
		fmt.Fprintf(os.Stderr, "mesh-host launch: cannot start %q: %v\n", binary, err)
	}
	return ExitCannotStart
}

// Reload is `mesh-host reload PID`, the unit's ExecReload: it asks the host
// to read its configuration again. A machine need not have kill(1).
func Reload(args []string) int {
	if len(args) == 1 {
		if pid, err := strconv.Atoi(args[0]); err == nil && pid > 1 {
			if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
				fmt.Fprintf(os.Stderr, "mesh-host reload: cannot signal process %d: %v\n", pid, err)
				return 1
			}
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, "usage: mesh-host reload PID")
	return 2
}
