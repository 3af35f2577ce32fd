// Package launcher is what the service manager starts in place of the host:
// `mesh-host launch BINARY`, run from a copy of the binary that only a proven
// version replaces. It becomes the host (same process, same environment, so
// that notify and watchdog go on). A successor that cannot live does not cost
// the machine its host: the copy is put back.
//
// It runs before anything else of the binary and stands on the standard library
// alone, so that what breaks the host does not break it.
//
// # States
//
// What is installed is the same as the copy, or a successor, whose starts are
// counted until it proves itself (the host says so: Prove).
//
//	same ──other content is installed──► trial ──Prove──► same (the copy is renewed)
//	  ▲                                    │ Limit starts without proof, or cannot be executed
//	  │                                    ▼
//	  │                                 failed: written down, the copy is put back
//	  │                                    │ the copy is started, and counted as well
//	  └────────────Prove──────────────── again
//	                                       │ Limit starts without proof
//	                                       ▼
//	                                     halt: ExitCannotStart
//
// A start that somebody ended does not count: a host that was asked to stop says
// so (StoppedByRequest), and one that was ended by SIGTERM before it could is known by
// the service manager (Post). So no number of restarts and reboots reverts a
// good version. What ends with success by itself is counted: it is no host that
// leaves when nobody asked.
//
// Without a successor nothing is counted and nothing is put back: a crash of the
// version that has run for weeks is a restart.
//
// # What it survives
//
// The count is in a file of fixed size (slots): a full disk does not switch it
// off. What failed is written down before the copy is put back, and a launcher
// that was killed in between does it at its next start. Where the copy cannot be
// put back (a read-only or full disk), it is started where it lies, and the host
// in it knows that what is installed is no successor of it (Given).
package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ExitCannotStart is the exit code of a launcher that could start no host at
// all. Nothing else of this project ends so: the unit names it in
// RestartPreventExitStatus, and systemd gives up on it.
const ExitCannotStart = 179

// Limit is how many starts a version has to prove itself.
const Limit = 5

// A launch is one start.
type launch struct {
	binary string // the installed one
	own    string // a path that opens the copy
	dir    string // of the copy and the state
	state  State
	run    string // the service manager's name for this start
	// become replaces this process; it returns only when it cannot.
	become func(program string) error
}

// Main is `mesh-host launch BINARY`. It returns only when it failed.
func Main(args []string) int {
	path, err := os.Readlink(self)
	// What lies there may be replaced: it is nobody's file but the host's, and the
	// copy's to do.
	if len(args) != 1 || !filepath.IsAbs(args[0]) || filepath.Base(args[0]) != name || filepath.Base(filepath.Dir(path)) != folder {
		fmt.Fprintf(os.Stderr, "usage: %s/%s launch BINARY, which is called %s as well\n", folder, name, name)
		return 2
	}
	l := launch{binary: args[0], own: self, run: os.Getenv("INVOCATION_ID")}
	l.become = func(program string) error {
		return syscall.Exec(program, []string{l.binary, "run"}, os.Environ())
	}
	if err != nil {
		l.say("cannot find its own folder: %v", err)
	}
	l.dir = filepath.Dir(path)
	return l.start()
}

// What the copy and the host are called, and the folder that the copy is in.
const (
	name   = "mesh-host"
	folder = "launcher"
)

func (l *launch) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "mesh-host launch: %s\n", fmt.Sprintf(format, args...))
}

func (l *launch) start() int {
	var err error
	if l.state, err = Read(l.dir); err != nil {
		l.say("what it counted is begun anew: %v", err)
	}
	if l.state.Sequence == 0 {
		l.write() // it has its room from now on, also when the disk is full
	}
	same, sum, err := compare(l.own, l.binary)
	switch failed := l.state.Failed; {
	case err != nil:
		l.say("cannot read %q: %v", l.binary, err)
		return l.copy()
	case same:
		if failed != nil && !failed.Back {
			failed.Back = true // by a launcher that could not say so any more, or by hand
			l.write()
		}
		return l.again(l.binary)
	case failed != nil && failed.Digest == sum && !failed.Back:
		return l.putBack()
	default:
		return l.try(sum)
	}
}

// try starts a successor, if it has not been given up.
func (l *launch) try(sum string) int {
	t := l.state.Trial
	if t == nil || t.Digest != sum {
		total := 0
		if t != nil && !t.Again {
			total = t.Total
		}
		t = &Trial{Digest: sum, Total: total}
		l.state.Trial = t
	}
	if t.Starts >= Limit || t.Total >= 3*Limit {
		return l.giveUp("it did not prove itself")
	}
	if err := l.count(t); err != nil {
		// One that is not counted would never be given up.
		return l.copy()
	}
	err := l.become(l.binary)
	for range 20 {
		if !errors.Is(err, syscall.ETXTBSY) { // somebody is writing it at this moment
			break
		}
		time.Sleep(100 * time.Millisecond)
		err = l.become(l.binary)
	}
	l.say("cannot start %q: %v", l.binary, err)
	if passing(err) {
		t.uncount()
		l.write()
		return l.copy()
	}
	if _, serr := os.Stat(l.binary); serr != nil {
		return l.copy() // it went away as we looked
	}
	return l.giveUp(fmt.Sprintf("it cannot be executed: %v", err))
}

// passing are the errors of execve(2) that say nothing about the program.
func passing(err error) bool {
	return slices.ContainsFunc([]error{syscall.ETXTBSY, syscall.ENOMEM, syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE, syscall.EIO},
		func(e error) bool { return errors.Is(err, e) })
}

// count counts this start before it is made.
func (l *launch) count(t *Trial) error {
	t.Starts++
	t.Total++
	if l.run != "" {
		t.Runs = last(append(t.Runs, bounded(l.run)))
	}
	return l.write()
}

// write keeps the state. What is in its place and no state is moved aside.
func (l *launch) write() error {
	err := l.state.write(l.dir)
	if err == nil {
		return nil
	}
	path := filepath.Join(l.dir, StateFile)
	if fi, lerr := os.Lstat(path); lerr == nil && !fi.Mode().IsRegular() && os.Rename(path, path+".aside") == nil {
		err = l.state.write(l.dir)
	}
	if err != nil {
		l.say("cannot write down what it counts: %v", err)
	}
	return err
}

// giveUp ends the trial of a successor: it is written down, then the copy is put
// back.
func (l *launch) giveUp(why string) int {
	t := l.state.Trial
	l.say("%q is given up after %d starts: %s", l.binary, t.Starts, why)
	l.state.Failed = &Failed{Digest: t.Digest, Version: t.Version, Starts: t.Starts, Why: bounded(why), At: time.Now().UTC().Truncate(time.Second), Ends: t.Ends, Runs: t.Runs}
	l.state.Trial = &Trial{Again: true}
	l.write()
	return l.putBack()
}

// putBack puts the copy in the place of what failed, and starts it.
func (l *launch) putBack() int {
	if err := replace(l.own, l.binary); err != nil {
		l.say("cannot put the last good version back: %v: it is started where it lies", err)
		return l.again(l.own)
	}
	l.say("the last good version is put back as %q", l.binary)
	l.state.Failed.Back = true
	l.write()
	return l.again(l.binary)
}

// again starts what the copy is as well: after a successor failed it has to
// prove itself anew, otherwise there is nothing to count.
func (l *launch) again(program string) int {
	switch t := l.state.Trial; {
	case t == nil:
	case !t.Again:
		// The successor was taken away again; or it became the copy, and was killed
		// before it could say so.
		if sum, err := digest(l.own); err == nil && sum == t.Digest {
			l.state.Failed = nil
		}
		l.state.Trial = nil
		l.write()
	case t.Starts >= Limit:
		// Whoever starts the unit by hand has another few starts.
		t.Starts, t.Total = 0, 0
		l.write()
		l.say("the last good version, started %d times since its successor failed, does not live either; see mesh-host status and the log above", Limit)
		return ExitCannotStart
	default:
		l.count(t)
	}
	err := l.become(program)
	l.say("cannot start %q: %v", program, err)
	if program == l.own {
		return ExitCannotStart
	}
	return l.copy()
}

// copy starts the copy where it lies, because what is installed cannot be: the
// machine is not left alone until it can.
func (l *launch) copy() int {
	l.say("the last good version is started where it lies")
	err := l.become(l.own)
	l.say("cannot start %q: %v", l.own, err)
	return ExitCannotStart
}

// Post is `mesh-host post`, the unit's ExecStopPost: it keeps how this start
// ended, as systemd says it ($SERVICE_RESULT and others, systemd.exec(5)).
func Post() int {
	path, err := os.Readlink("/proc/self/exe")
	if err == nil {
		err = ended(filepath.Dir(path), os.Getenv("SERVICE_RESULT"), os.Getenv("EXIT_CODE"), os.Getenv("EXIT_STATUS"))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "mesh-host post: cannot write down how it ended: %v\n", err)
		return 1
	}
	return 0
}

func ended(dir, result, code, status string) error {
	return change(dir, func(s *State) bool {
		if s.Trial == nil || s.Trial.Starts == 0 || result == "" {
			return false
		}
		if result == "success" && code == "killed" && status == "TERM" {
			// By SIGTERM, before it could say that it was asked to stop.
			s.Trial.uncount()
		} else {
			s.Trial.Ends = last(append(s.Trial.Ends, bounded(strings.Join([]string{result, code, status}, "/"))))
		}
		return true
	})
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
