// Package supervise is the shim: the small program above each declared
// process that keeps it up, counts its failures and ends it whole. It is what
// `mesh-host shim [--root DIR] NAME` runs before anything else of the binary.
//
// It uses the standard library and nothing of ours, because it runs from a
// copy of the binary that only a proven version replaces; so it also writes
// its own files and reads the clock itself.
//
// # Files
//
// All are in /var/lib/nox-mesh/process/NAME, which is root's alone:
//
//	definition.json  what to run; written by the host, read once, at the start
//	state            what became of it; written by the shim after every change
//	lock             a lock (fcntl(2)) held as long as the shim lives
//	output.log       what the process printed, where there is no journal, and
//	output.log.1     what was before that: each is at most 1 MiB
//	rollback         what is known of its executables, if the definition says so
//	good.DIGEST      a copy of the one that it lived with for the healthy minute
//
// # States
//
//	 start
//	   │        cannot start
//	   ▼      ┌─────────────────────────────────────┐
//	starting ─┤                                     │
//	   │      │ exits                               │
//	settled   └──────────► clearing ──nothing left──┼─► backoff ──elapsed─► starting
//	   ▼                      ▲                     ├─► exited   the policy says so
//	running ──────exits───────┘                     └─► halted   failure_limit
//	   │                                                 (or backoff: rolled back)
//	healthy: failures are forgotten
//
//	SIGTERM, in any state: stopping ──nothing left──► stopped, and the shim ends
//	                          └─stop_timeout─► killing ──nothing left──► stopped
//
// Every state but exited, halted and stopped has exactly one timer, which
// enter arms: nothing waits for an event that may never come.
//
// # What it promises
//
// One process of a name at a time: the lock keeps a second shim away, and a
// shim that finds the child of one that was killed ends it before it starts
// its own. A process is ended whole, with all it forked, also what called
// setsid(2): the shim is the subreaper (prctl(2)), so what loses its parent
// becomes the shim's own child, and it leaves when it has none. It signals
// only what the kernel lets nobody else be: its own children, which cannot be
// replaced before it reaps them, or a process whose start time and boot are
// those of the state file, held by a pidfd.
//
// Whatever fails is counted and tried again, up to failure_limit: an exit that
// is no success, and a program that is missing, not executable, busy or of
// another architecture. A halted process stays down until its definition
// changes or somebody starts it; so does a shim that was killed and comes up
// again (the count is in the state file), but not a machine that rebooted.
//
// A process whose definition says rollback has its executable judged: one that it
// lived with for the healthy minute is kept as a copy (prove), and at failure_limit
// that takes the place of another one that failed, in one rename (rollBack). What
// failed is written down first; killed at any step, the next shim ends what was
// begun. If the older fails as well, or its copy is gone or damaged, or the path
// cannot be written, the process is halted: nothing is put back twice in a row.
// That no copy could be made is said, and costs the process nothing.
//
// A full or broken disk costs the state its freshness, never the process its
// life. The state has its room before the child is started (State, save), and
// is never what says that something lives: that is the lock, which the kernel
// holds, and which also says of what definition (lock). Every Guard the shim
// sees to it that both are still there: it writes again what could not be
// written or was damaged, and takes its lock anew when the file was deleted.
// Only when its whole folder is gone, so that nobody could know of it, does it
// end its child and itself.
//
// # What it does not
//
// If the shim is killed by SIGKILL and no systemd watches over its cgroup,
// what its child had forked off with setsid before is not found again; nor is
// the child itself when the state was damaged, too. A file system that never
// overwrites in place (btrfs, ZFS) needs room for a new state when it is full.
//
// Of a program only its executable is put back, and none of what else it needs. A
// shim that is killed while it is putting back, and never started again, leaves a
// temporary file beside the path.
package supervise

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// The files of a process, in its folder.
const (
	DefinitionFile = "definition.json"
	StateFile      = "state"
	LockFile       = "lock"
	OutputFile     = "output.log"
	RollbackFile   = "rollback"
)

// folder is where the folders of all processes are. It is layout.Processes of
// the host, which this package does not import; a test of the host's holds the
// two together.
const folder = "/var/lib/nox-mesh/process"

// Folder is the folder of the process name under root.
func Folder(root, name string) string { return filepath.Join("/", root, folder, name) }

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// ValidName reports whether name is one of a process: as the declaration has
// it, so it can be a folder, an argument and a part of a unit's name.
func ValidName(name string) bool { return validName.MatchString(name) }

// arguments are those of a shim.
type arguments struct {
	root, name string
	detach     bool
}

func parseArguments(args []string) (a arguments, err error) {
	set := flag.NewFlagSet("shim", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&a.root, "root", "", "")
	set.BoolVar(&a.detach, "detach", false, "")
	if err = set.Parse(args); err != nil {
		return a, err
	}
	if a.name = set.Arg(0); set.NArg() != 1 || !ValidName(a.name) {
		return a, errors.New("it needs the name of one process")
	}
	return a, nil
}

// Main is `mesh-host shim [--root DIR] [--detach] NAME`; it returns the exit
// code. With --detach it starts itself again in a session of its own, with
// nothing inherited, and returns.
func Main(args []string) int {
	a, err := parseArguments(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "usage: mesh-host shim [--root DIR] [--detach] NAME")
		return 2
	}
	if err = keepDescriptors(); err == nil {
		if a.detach {
			err = detach(a.root, a.name)
		} else {
			err = run(a.root, a.name)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "mesh-host shim: %v\n", err)
		return 1
	}
	return 0
}

// keepDescriptors keeps what we were given without being asked, by a careless
// ancestor, from whatever we start.
func keepDescriptors() error {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range fds {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

// detach starts the shim so that whoever called can end, and is not the one
// who must wait for it. It returns when that shim has its lock, or has ended:
// none is on its way, to come up after somebody stopped what he saw.
func detach(root, name string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	up, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer up.Close()
	argv := []string{os.Args[0], "shim", "--root", root, name}
	_, err = syscall.ForkExec("/proc/self/exe", argv, &syscall.ProcAttr{
		Dir:   "/",
		Env:   []string{path},
		Files: []uintptr{w.Fd(), null.Fd(), null.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	w.Close()
	if err != nil {
		return fmt.Errorf("cannot start the shim of %q: %w", name, err)
	}
	if err := up.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := up.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot wait for the shim of %q: %w", name, err)
	}
	return nil
}

// letGo gives up our standard input, by which detach waits.
func letGo() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	return syscall.Dup3(int(null.Fd()), 0, 0)
}

func run(root, name string) error {
	// Registered before anything else, so that no signal is lost. Those that
	// are caught and not ignored are at their default again in the child
	// (execve(2)). SIGPIPE: a journal that restarts must not end us.
	term, chld, other := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(chld, syscall.SIGCHLD)
	signal.Notify(other, syscall.SIGHUP, syscall.SIGPIPE)
	syscall.Umask(0o022)

	dir := Folder(root, name)
	definition, err := readBounded(filepath.Join(dir, DefinitionFile))
	if err != nil {
		return fmt.Errorf("cannot read the definition: %w", err)
	}
	// Before anything is made: one that comes too late leaves nothing behind.
	lock, err := alone(dir, name, definition)
	if err != nil {
		return err
	}
	defer func() { lock.file.Close() }()
	if err := letGo(); err != nil {
		return err
	}
	const prSetChildSubreaper = 36 // prctl(2)
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); e != 0 {
		return fmt.Errorf("cannot become a subreaper: %w", e)
	}
	out, err := openOutput(dir)
	if err != nil {
		return err
	}
	defer out.close()
	s := &shim{root: root, dir: dir, out: out, lock: lock}
	if err := s.load(definition); err != nil {
		return err
	}
	guard := time.NewTicker(s.def.Guard)
	defer guard.Stop()
	s.start()
	for s.phase != Stopped {
		select {
		case <-term:
			s.stopAsked()
		case <-chld:
			s.reap()
		case <-s.timer:
			s.elapsed()
		case <-guard.C:
			s.guard()
			s.watchOver()
		case k := <-s.keeping:
			s.wasKept(k)
		}
	}
	return s.lost
}

// alone takes the lock, unless another shim lives over dir.
func alone(dir, name string, definition []byte) (*lock, error) {
	l, err := acquire(dir, mark(Digest(definition)))
	if err == nil {
		// One whose lock was deleted keeps nobody away by that.
		var fi os.FileInfo
		var other *Handle
		if fi, err = l.file.Stat(); err == nil {
			other, err = stray(dir, fi)
		}
		if other != nil {
			other.Close()
			err = ErrHeld
		}
		if err != nil {
			l.file.Close()
		}
	}
	if errors.Is(err, ErrHeld) {
		return nil, fmt.Errorf("process %q has a shim already", name)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", name, err)
	}
	return l, nil
}
