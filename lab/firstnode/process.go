package firstnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A process is named by its number and its start, in clock ticks after boot,
// proc_pid_stat(5): a number alone is given again.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// look returns the process of that number, and whether it lives: a zombie does
// not.
func look(pid int) (process, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The name is in parentheses and may hold anything.
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return process{PID: pid, Start: start}, err == nil
}

func (p process) lives() bool {
	now, ok := look(p.PID)
	return ok && p.PID != 0 && now == p
}

// arguments returns the command line of the process, nil if it is gone.
func (p process) arguments() []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// running returns the processes whose executable lies in dir, also when the
// file was replaced since.
func running(dir string) ([]process, error) {
	exes, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return nil, err
	}
	var found []process
	for _, exe := range exes {
		target, err := os.Readlink(exe)
		if err != nil || !strings.HasPrefix(target, dir+"/") {
			continue // gone, or another user's
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(exe)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if p, ok := look(pid); ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// end asks the process to end, and kills it when it has not after grace. It
// returns when it is gone.
func (p process) end(grace time.Duration) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot end process %d: %w", p.PID, err)
	}
	defer unix.Close(fd)
	if !p.lives() {
		return nil // the descriptor may be that of a later one
	}
	for _, try := range []struct {
		signal unix.Signal
		wait   time.Duration
	}{{unix.SIGTERM, grace}, {unix.SIGKILL, 5 * time.Second}} {
		if err := unix.PidfdSendSignal(fd, try.signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot end process %d: %w", p.PID, err)
		}
		// A pidfd is readable when its process has ended, pidfd_open(2).
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for {
			n, err := unix.Poll(poll, int(try.wait.Milliseconds()))
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return fmt.Errorf("cannot wait for process %d: %w", p.PID, err)
			}
			if n > 0 {
				return nil
			}
			break
		}
	}
	return fmt.Errorf("cannot end process %d: it is still there after SIGKILL", p.PID)
}

// endAll ends everything that runs from dir: the host first, which would start
// the others anew, then the shims, which end what is under them, then the rest.
func endAll(dir string, host process) error {
	var errs []error
	rank := func(p process) int {
		switch args := p.arguments(); {
		case p == host || len(args) > 1 && args[1] == "run":
			return 0
		case len(args) > 1 && args[1] == "shim":
			return 1
		default:
			return 2
		}
	}
	// What is started while the first ones end is seen in the next round.
	for range 3 {
		found, err := running(dir)
		if err != nil || len(found) == 0 {
			return errors.Join(append(errs, err)...)
		}
		slices.SortStableFunc(found, func(a, b process) int { return rank(a) - rank(b) })
		errs = nil
		for _, p := range found {
			// The host may finish the resource in hand.
			errs = append(errs, p.end(30*time.Second))
		}
	}
	found, err := running(dir)
	if len(found) > 0 {
		errs = append(errs, fmt.Errorf("process %d still runs: %q", found[0].PID, found[0].arguments()))
	}
	return errors.Join(append(errs, err)...)
}

// End ends everything whose executable lies in dir: the host first.
func End(dir string) error { return endAll(dir, process{}) }
