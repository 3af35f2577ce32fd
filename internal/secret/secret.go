// Package secret is what a program does so that nobody sees what only it is to
// know: its memory goes into no core, and what a person types at a terminal is
// not shown.
//
// It promises that a program which called KeepMemory leaves no core, whatever its
// limits and /proc/sys/kernel/core_pattern say, and that those it runs are as they
// would be without it; that one which called NoCore leaves no core file; and that a
// terminal shows again what is typed once the secret is read, also when a key that
// ends or stops programs was pressed. It does not promise anything against root,
// against a swap that is not encrypted, or for a terminal whose reader was killed
// (kill -9): stty sane helps there. It keeps nothing.
package secret

import "golang.org/x/sys/unix"

// KeepMemory keeps the memory of this program from a core, and from every process
// of the same user that would look into it (ptrace(2)). Call it first in main.
//
// It is PR_SET_DUMPABLE (prctl(2)) and not RLIMIT_CORE, which the programs that are
// run would inherit, and which a core_pattern that is a pipe does not ask (core(5));
// execve(2) sets this back. What it costs: /proc/PID belongs to root, so that another
// process of the same user can no longer read what only the owner may (exe, fd,
// environ, maps); the process itself still can all but the last two
// (proc_pid_fd(5), and the check of ptrace(2) passes within a process).
func KeepMemory() {
	// It fails for no argument that is known; there is nothing to do about it.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// NoCore is for a program that others of the same user look after by /proc/PID, and
// that runs no program, which would inherit it: RLIMIT_CORE (setrlimit(2)) is 0. Where
// core_pattern is a pipe, who reads it is told of that limit and has to hold it, as
// systemd-coredump does (core(5)). Call it first in main.
func NoCore() {
	// To lower a limit is always allowed.
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}
