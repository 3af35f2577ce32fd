package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

// The shim tries to kill what cannot be killed, a process in an uninterruptible
// sleep, every killEvery; told to stop, it gives up after killTries.
const (
	killEvery = time.Second
	killTries = 30
)

// A shim is the machine of the package's comment. One goroutine owns it.
type shim struct {
	root, dir string
	out       *output
	lock      *lock

	def    Definition
	digest string
	state  State
	broken error // why the definition cannot be used

	phase  Phase
	clock  *time.Timer
	timer  <-chan time.Time
	failed bool         // the last end was a failure
	lasted bool         // it has lived for the healthy minute
	tries  int          // of killing
	group  int          // the process group of the child that was asked to end
	asked  map[int]bool // who was asked to end
	unsaid bool         // the state could not be written, and that was said
	lost   error        // why the lock is not ours any more

	known     Rollback    // of the executables; all below is for that alone
	run       *executable // what it was started from last
	blameless bool        // no executable could have been started
	spared    bool        // so it was the time before
	keeping   <-chan kept // a copy is being made
	unkept    string      // why there is none
	again     time.Time   // when it is tried again
}

// load takes the definition and what an earlier shim left, ends its child if
// that still lives, and makes the state file, so that it has its room on the
// disk before anything runs.
func (s *shim) load(definition []byte) error {
	s.digest = Digest(definition)
	var err error
	if s.def, err = parse(definition); err != nil {
		s.broken = fmt.Errorf("cannot read the definition: %w", err)
	}
	s.def.timing()
	self, err := procOf(os.Getpid())
	if err != nil {
		return fmt.Errorf("cannot read about the shim itself: %w", err)
	}
	before, err := ReadState(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.out.say("the state file cannot be read and is begun anew: %v", err)
	}
	if err := endLeftover(before); err != nil {
		return err
	}
	s.state = State{
		Sequence: before.Sequence, Shim: self, Definition: s.digest, Completed: before.Completed,
		Phase: Starting, Since: time.Now().UTC(),
	}
	cutOff := before.Phase != Stopped && before.Phase != Stopping && before.Phase != Killing
	if cutOff && before.Definition == s.digest && before.Shim.Boot == self.Boot {
		s.state.Failures, s.state.Short, s.state.LastExit = before.Failures, before.Short, before.LastExit
		// What came to rest stays so. What ran ended with its shim: the host
		// takes our word for it that something runs.
		if before.Phase == Halted || before.Phase == Exited {
			s.phase = before.Phase
			s.state.Phase, s.state.Since = before.Phase, before.Since
		}
	}
	s.save()
	s.recall()
	return nil
}

// start is the first event.
func (s *shim) start() {
	switch {
	case s.broken != nil:
		s.state.LastExit = s.broken.Error()
		s.out.say("%v", s.broken)
		s.enter(Halted, 0)
	case s.def.Once && s.state.Completed == s.digest:
		s.enter(Exited, 0)
	case s.phase == Halted || s.phase == Exited: // of a shim that was killed
		s.out.say("%s; still %s", s.state.LastExit, s.phase)
		s.enter(s.phase, 0)
	default:
		s.spawn()
	}
}

// enter goes to a phase, arms its one timer (0: none) and writes it down.
func (s *shim) enter(p Phase, d time.Duration) {
	s.phase = p
	s.state.Phase, s.state.Since = p, time.Now().UTC()
	if p == Exited || p == Halted {
		s.release()
	}
	s.arm(d)
	s.save()
}

func (s *shim) arm(d time.Duration) {
	if s.clock == nil {
		s.clock = time.NewTimer(time.Hour)
		s.timer = s.clock.C
	}
	s.clock.Stop()
	if d > 0 {
		s.clock.Reset(d)
	}
}

// spawn starts the child. What cannot be started has failed.
func (s *shim) spawn() {
	s.lasted = false
	s.finish()
	s.take()
	pid, err := s.exec()
	if s.run != nil && !s.run.is(s.under(s.def.Command[0])) {
		s.release() // nobody can say which of the two it was
	}
	if err != nil {
		s.failed = true
		s.state.LastExit = fmt.Sprintf("cannot start %q: %v", s.def.Command[0], err)
		s.ended()
		return
	}
	// It is not reaped yet, so this is it, even if it ended meanwhile.
	child, err := procOf(pid)
	if err != nil {
		s.out.say("cannot read about the process: %v", err)
	}
	child.PID = pid
	s.state.Child = &child
	s.enter(Starting, s.def.Settle)
}

// reap is the event that some child ended: the process itself, or something it
// left behind.
func (s *shim) reap() {
	exited, none := false, false
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		none = errors.Is(err, syscall.ECHILD)
		if err != nil || pid <= 0 {
			break
		}
		delete(s.asked, pid)
		if s.state.Child != nil && pid == s.state.Child.PID {
			exited = true
			s.state.Child = nil
			s.state.LastExit = exitText(ws)
			s.failed = !ws.Exited() || !slices.Contains(s.def.SuccessCodes, ws.ExitStatus())
		}
	}
	switch s.phase {
	case Starting, Running:
		switch {
		case exited && none:
			s.ended()
		case exited:
			s.tries = 0
			s.kill()
			s.enter(Clearing, killEvery)
		}
	case Clearing:
		if none {
			s.ended()
		} else {
			s.kill()
		}
	case Stopping:
		if none {
			s.stopped()
		} else {
			s.ask()
		}
	case Killing:
		if none {
			s.stopped()
		} else {
			s.kill()
		}
	}
}

// ended is the event that the child and all of its are gone, or that it could
// not be started. It is where the policy is.
func (s *shim) ended() {
	if s.state.Short++; s.lasted {
		s.state.Short = 0
	}
	if s.failed && s.def.Rollback && s.blameless != s.spared {
		// What no executable is to blame for, and what it is, are counted apart.
		s.state.Failures = 0
	}
	s.spared = s.blameless
	if s.failed {
		s.state.Failures++
	} else {
		s.state.Failures = 0
	}
	switch {
	case s.def.Once && !s.failed:
		s.state.Completed = s.digest
		s.enter(Exited, 0)
	case s.def.Restart == "never", s.def.Restart == "on-failure" && !s.failed:
		s.out.say("%s", s.state.LastExit)
		s.enter(Exited, 0)
	case s.failed && s.state.Failures >= s.def.FailureLimit:
		s.atLimit()
	default:
		d := backoff(s.def.Backoff, s.def.BackoffMax, s.early())
		count := ""
		switch {
		case s.failed:
			count = fmt.Sprintf("%d of %d failures in a row, ", s.state.Failures, s.def.FailureLimit)
		case s.state.Short > 0:
			count = fmt.Sprintf("%d short runs in a row, ", s.state.Short)
		}
		s.out.say("%s; %sstarted again in %s", s.state.LastExit, count, d)
		s.enter(Backoff, d)
	}
}

// atLimit is for what failed too often in a row: the executable before this one, or
// the end.
func (s *shim) atLimit() {
	again, why := false, ""
	if s.def.Rollback {
		again, why = s.rollBack()
	}
	if again {
		s.state.Failures, s.state.Short = 0, 0
		s.enter(Backoff, backoff(s.def.Backoff, s.def.BackoffMax, 0))
		return
	}
	if why != "" {
		why = "; " + why
	}
	s.out.say("%s; halted after %d failures in a row%s", s.state.LastExit, s.state.Failures, why)
	s.enter(Halted, 0)
}

// early is how often in a row it ended early, for the back-off. A shim of before
// short runs were counted left its failures alone.
func (s *shim) early() int { return max(s.state.Short, s.state.Failures) }

// backoff is the pause before start n+1: the first is short, for what fails
// once; those after it double from ten times that, up to limit, so that what
// takes a moment to pass (a port that is busy, a file that is being written)
// is survived by any failure_limit worth the name.
func backoff(first, limit time.Duration, n int) time.Duration {
	if n <= 1 {
		return min(first, limit)
	}
	d := 10 * first
	for ; n > 2 && d < limit; n-- {
		d *= 2
	}
	return min(d, limit)
}

// elapsed is the event that the time of the phase is over.
func (s *shim) elapsed() {
	switch s.phase {
	case Starting:
		s.enter(Running, max(s.def.Healthy-s.def.Settle, time.Nanosecond))
	case Running:
		s.lasted = true
		if s.state.Failures > 0 || s.state.Short > 0 {
			s.state.Failures, s.state.Short = 0, 0
			s.save()
		}
		s.prove()
	case Backoff:
		s.spawn()
	case Stopping:
		s.out.say("did not end in %s and is killed", s.def.StopTimeout)
		s.tries = 0
		s.kill()
		s.enter(Killing, killEvery)
	case Clearing, Killing:
		s.tries++
		if s.tries == killTries {
			s.out.say("something the process left cannot be killed")
			if s.phase == Killing {
				s.stopped()
				return
			}
		}
		s.kill()
		s.arm(killEvery)
	}
}

// stopAsked is the event that the shim is told to end.
func (s *shim) stopAsked() {
	switch s.phase {
	case Starting, Running:
		s.group, s.asked = s.state.Child.PID, map[int]bool{}
		// A stopped process would not hear it (systemd.kill(5), SIGCONT).
		_ = syscall.Kill(-s.group, syscall.Signal(s.def.StopSignal))
		_ = syscall.Kill(-s.group, syscall.SIGCONT)
		s.ask()
		s.enter(Stopping, max(s.def.StopTimeout, time.Nanosecond))
	case Clearing:
		s.tries = 0
		s.enter(Killing, killEvery)
	case Backoff, Exited, Halted:
		s.enter(Stopped, 0)
	}
}

func (s *shim) stopped() {
	s.state.Child = nil
	s.enter(Stopped, 0)
}

// ask tells those that became our children since, and were not in the group
// that was told, to end; each once.
func (s *shim) ask() {
	all, err := processes()
	if err != nil {
		s.out.say("cannot list processes: %v", err)
		return
	}
	for _, p := range all {
		if p.parent == os.Getpid() && p.group != s.group && !s.asked[p.pid] {
			s.asked[p.pid] = true
			_ = syscall.Kill(p.pid, syscall.Signal(s.def.StopSignal))
		}
	}
}

// kill kills our children. Theirs become ours by that, and come to the same
// end at the next reap. No other PID is touched: it could be anybody's.
func (s *shim) kill() {
	all, err := processes()
	if err != nil {
		s.out.say("cannot list processes: %v", err)
		return
	}
	for _, p := range all {
		if p.parent == os.Getpid() {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}

func exitText(ws syscall.WaitStatus) string {
	if ws.Signaled() {
		return fmt.Sprintf("killed by signal %d (%s)", int(ws.Signal()), ws.Signal())
	}
	return fmt.Sprintf("exited with %d", ws.ExitStatus())
}
