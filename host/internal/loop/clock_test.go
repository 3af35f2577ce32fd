package loop

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// jumps are those of a clock that a test sets: as the kernel's, any number of
// them before somebody asks is one.
type jumps chan error

func (j jumps) Await(ctx context.Context) error {
	select {
	case err := <-j:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j jumps) set() {
	select {
	case j <- nil:
	default:
	}
}

// heeding runs f beside a loop that heeds the clock, and returns the log.
func heeding(t *testing.T, r *recorder, f func(ctx context.Context, l *Loop, j jumps)) string {
	var log bytes.Buffer
	during(t, r, func(ctx context.Context, l *Loop) {
		j := make(jumps, 1)
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			l.HeedClock(ctx, j, slog.New(slog.NewTextHandler(&log, nil)))
			close(ended)
		}()
		f(ctx, l, j)
		cancel()
		<-ended
	})
	return log.String()
}

func TestH12AJumpOfTheClockMakesAPassSoon(t *testing.T) {
	r := &recorder{each: time.Second}
	log := heeding(t, r, func(_ context.Context, _ *Loop, j jumps) {
		time.Sleep(time.Minute)
		if got := r.got(); got != "" {
			t.Errorf("nobody set the clock, and there are passes: %s", got)
		}
		j.set()
		time.Sleep(time.Second)
		if got := r.got(); got != "clock" {
			t.Errorf("a second after it: %q", got)
		}
		time.Sleep(3 * time.Minute)
		if got := r.got(); got != "clock" {
			t.Errorf("one jump made passes %q", got)
		}
	})
	if strings.Count(log, "\n") != 1 || !strings.Contains(log, "the clock was set") {
		t.Errorf("log: %q", log)
	}
}

// A client of NTP that is broken sets the clock every second, for a day.
func TestH12AClockThatIsSetEverySecondMakesAPassAMinute(t *testing.T) {
	r := &recorder{}
	log := heeding(t, r, func(_ context.Context, _ *Loop, j jumps) {
		for range 24 * 60 * 60 {
			j.set()
			time.Sleep(time.Second)
		}
	})
	// With the timer's, should it end in the same moment.
	if n := len(strings.Fields(r.got())); n < 24*60-1 || n > 24*60+1 {
		t.Errorf("%d passes in a day", n)
	}
	if n := strings.Count(log, "\n"); n < 24 || n > 25 {
		t.Errorf("%d lines of log in a day", n)
	}
}

// The last of several jumps has a pass that begins after it, and only one.
func TestH12TheLastJumpHasItsPass(t *testing.T) {
	r := &recorder{}
	heeding(t, r, func(_ context.Context, _ *Loop, j jumps) {
		for range 10 {
			j.set()
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Minute)
		if got := r.got(); got != "clock clock" {
			t.Errorf("ten jumps in ten seconds: %q", got)
		}
	})
}

func TestH12AJumpDuringAPassIsOneMoreWithAllElse(t *testing.T) {
	r := &recorder{each: 150 * time.Second}
	heeding(t, r, func(ctx context.Context, l *Loop, j jumps) {
		l.Trigger(ctx, TriggerStart)
		for range 110 {
			j.set()
			time.Sleep(time.Second)
		}
		l.Trigger(ctx, TriggerReconnect)
		time.Sleep(3 * time.Minute)
		if got := r.got(); got != "start clock+reconnect" {
			t.Errorf("passes: %q", got)
		}
	})
}

func TestH12AClockThatCannotBeWatchedIsSaidOnce(t *testing.T) {
	r := &recorder{}
	log := heeding(t, r, func(_ context.Context, _ *Loop, j jumps) {
		j <- errors.New("no more")
		time.Sleep(11 * time.Minute)
		if got := r.got(); got != "timer" {
			t.Errorf("passes: %q", got)
		}
	})
	if strings.Count(log, "\n") != 1 || !strings.Contains(log, "no more") {
		t.Errorf("log: %q", log)
	}
}
