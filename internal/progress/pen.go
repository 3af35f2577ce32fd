package progress

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long the end of a work waits for a terminal that takes nothing.
const patience = 250 * time.Millisecond

// A pen writes, in a goroutine of its own, so that a write that blocks holds up
// nobody else.
type pen struct {
	to    io.Writer
	done  func() // closes to, where it is ours
	take  func(tick bool) []byte
	wake  chan struct{}
	asked chan chan struct{} // asks for all to be written
	stop  chan struct{}
	ended chan struct{}
}

// newPen begins to write what take returns: every so often, and when asked.
func newPen(w io.Writer, every time.Duration, take func(tick bool) []byte) *pen {
	p := &pen{
		to: w, done: func() {}, take: take,
		wake: make(chan struct{}, 1), asked: make(chan chan struct{}), stop: make(chan struct{}),
		ended: make(chan struct{}),
	}
	if f := own(w); f != nil {
		p.to, p.done = f, func() { f.Close() }
	}
	go p.run(every)
	return p
}

// own returns a second descriptor of a file. A write to a broken pipe kills a
// program when the descriptor is 1 or 2, and fails on any other (os/signal,
// SIGPIPE): a reader that went away is no reason to stop the work.
func own(w io.Writer) *os.File {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	c, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	second := -1
	err = c.Control(func(fd uintptr) {
		if n, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3); err == nil {
			second = n
		}
	})
	if err != nil || second < 0 {
		return nil
	}
	return os.NewFile(uintptr(second), f.Name())
}

func (p *pen) run(every time.Duration) {
	defer close(p.ended)
	defer p.done()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	failed := false
	for {
		tick, stop, answer := false, false, chan struct{}(nil)
		select {
		case <-ticker.C:
			tick = true
		case <-p.wake:
		case answer = <-p.asked:
		case <-p.stop:
			stop = true
		}
		if text := p.take(tick); len(text) > 0 && !failed {
			_, err := p.to.Write(text)
			failed = err != nil
		}
		if answer != nil {
			close(answer)
		}
		if stop {
			return
		}
	}
}

func (p *pen) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// flush returns when all is written, or patience is at its end. What could not be
// written is when the terminal takes it: it is whole lines, or erases one that is
// on the terminal, so it can come late.
func (p *pen) flush() {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	answer := make(chan struct{})
	select {
	case p.asked <- answer:
	case <-timer.C:
		return
	}
	select {
	case <-answer:
	case <-timer.C:
	}
}

// close ends the goroutine; one whose write blocks ends when that does, or with
// the program.
func (p *pen) close() {
	close(p.stop)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	}
}
