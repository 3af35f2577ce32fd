package cli

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
)

// An ending is what tells a program to end: SIGINT, SIGTERM, and SIGHUP unless it
// was ignored when the program began, as nohup(1) does.
type ending struct {
	told chan os.Signal
	// reloads says that SIGHUP means something else to the command.
	reloads atomic.Bool
}

type endingKey struct{}

// told is the cause of a context that ended so, as signal.NotifyContext has it.
type told struct{ by os.Signal }

func (t told) Error() string        { return t.by.String() + " signal received" }
func (t told) Is(target error) bool { return target == context.Canceled }

// untilTold returns a context that ends when the program is told to end. From then
// on the second Ctrl-C kills at once: there are reads that nothing else interrupts.
// A second SIGTERM or SIGHUP does not, because timeout(1) sends one of each to the
// program and to its group, and a terminal that is closed does it through the shell
// and the kernel: what is being cleared away would stay.
func untilTold(parent context.Context) (context.Context, func()) {
	e := &ending{told: make(chan os.Signal, 4)}
	ctx, end := context.WithCancelCause(context.WithValue(parent, endingKey{}, e))
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	signal.Notify(e.told, signals...)
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stopped:
				return
			case s := <-e.told:
				if s == syscall.SIGHUP && e.reloads.Load() {
					continue
				}
				signal.Reset(syscall.SIGINT)
				end(told{s})
			}
		}
	}()
	return ctx, func() {
		// The signals stay taken: the program is as good as over, and one that comes now
		// would make another end of the one it has.
		close(stopped)
		<-done
		end(nil)
	}
}

// HangupReloads says that SIGHUP does not end this program: the command asks for it
// itself (signal.Notify), to read its configuration again. ctx is that of Main.
func HangupReloads(ctx context.Context) {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		e.reloads.Store(true)
	}
}

// interrupted says of what ended because the program was told to end what a person
// did, and not how Go has it.
type interrupted struct{ error }

func (i interrupted) Error() string {
	canceled := context.Canceled.Error()
	text := strings.ReplaceAll(i.error.Error(), "interrupted: "+canceled, canceled)
	return strings.ReplaceAll(text, canceled, "interrupted")
}

func (i interrupted) Unwrap() error { return i.error }
